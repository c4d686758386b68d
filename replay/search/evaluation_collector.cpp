#include "replay/search/evaluation_collector.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "harness/base/time_left.h"

namespace rekernel {
namespace {

namespace json = boost::json;

/// What the search itself says of an evaluation, before what the evaluator says.
json::object evaluation_title(const WaveItem& item) {
  json::object event{{"event", "evaluation"}, {"id", item.id}};
  if (item.candidate) event["sha256"] = candidate_sha256(*item.candidate);
  return event;
}

bool begins_with(const json::object& object, const json::object& first_members) {
  return object.size() >= first_members.size() &&
         std::equal(first_members.begin(), first_members.end(), object.begin(),
                    [](const auto& a, const auto& b) {
                      return a.key() == b.key() && a.value() == b.value();
                    });
}

json::object evaluation_event(const WaveItem& item, const json::object& record) {
  json::object event = evaluation_title(item);
  for (const auto& [key, value] : record) {
    if (key != "chain") event.emplace(key, value);
  }
  return event;
}

}  // namespace

void EvaluationCollector::collect(const std::string& title, const std::vector<WaveItem>& wave,
                                  const Taken& taken) {
  InTurn<json::object> turn(
      wave.size(), [&](std::size_t i, const json::object& record) { put(wave[i], record, taken); },
      [&] { return recording_.going(); });
  std::vector<std::size_t> missing;
  bool anything_new = false;
  for (std::size_t i = 0; i < wave.size() && recording_.going(); ++i) {
    const WaveItem& item = wave[i];
    if (!item.candidate) {
      turn.arrive(i, recorded_invalid_reply(problem_, item.complaint));
      continue;
    }
    const json::object* record = turn.is_next(i) ? recording_.next("evaluation", item.id) : nullptr;
    if (!record && recording_.going()) {
      anything_new = true;
      record =
          recording_.pending("evaluation", item.id, "sha256", candidate_sha256(*item.candidate));
    }
    if (record && turn.is_next(i)) {
      turn.pass_next(*record);
    } else if (record) {
      turn.arrive(i, *record);
    } else {
      missing.push_back(i);
    }
  }
  if (recording_.going() && !missing.empty()) ask(title, wave, missing, turn);
  if (anything_new) recording_.forget_pending();  // as for replies
}

void EvaluationCollector::ask(const std::string& title, const std::vector<WaveItem>& wave,
                              const std::vector<std::size_t>& missing, InTurn<json::object>& turn) {
  const TimeLeft left(missing.size());
  std::size_t done = 0;
  around_.observer.show(title + left.text(done));
  std::vector<EvaluationRequest> asked;
  for (const std::size_t i : missing) asked.push_back({wave[i].id, &*wave[i].candidate});
  auto interruption =
      around_.evaluator.evaluate(asked, [&](std::size_t index, json::object record) {
        const std::size_t i = missing[index];
        refuse_other_gpu(wave[i].id, device_in(record));
        if (!recording_.going()) return false;
        if (!turn.is_next(i)) recording_.add_pending(evaluation_event(wave[i], record));
        turn.arrive(i, std::move(record));
        around_.observer.show(title + left.text(++done));
        return recording_.going();
      });
  if (interruption) recording_.interrupt(std::move(*interruption));
}

/// Nothing is recorded that a replay would refuse.
void EvaluationCollector::refuse_other_gpu(const std::string& id, const std::string& device) {
  if (settings_.mixed_gpus || device.empty()) return;
  if (device_.empty()) device_ = device;
  if (device == device_) return;
  recording_.interrupt(
      {Interruption::Kind::failed,
       "the evaluation of " + id + " was made on an " + device + ", the others on an " + device_ +
           ": their times cannot be compared, and it is not recorded. Go on with " +
           "GPUs of that kind; a search that begins with --mixed-gpus takes both"});
}

void EvaluationCollector::put(const WaveItem& item, const json::object& record,
                              const Taken& taken) {
  // A recorded event that begins as it should is what would be made of it.
  const json::value* recorded =
      begins_with(record, evaluation_title(item)) ? recording_.recorded_value(record) : nullptr;
  const json::value made = recorded ? json::value() : evaluation_event(item, record);
  const json::value& value = recorded ? *recorded : made;
  const json::object& event = value.get_object();
  const Result<Outcome> outcome =
      outcome_from_record(value, recording_.where() + ": evaluation " + item.id);
  if (!outcome) {
    return recording_.interrupt({Interruption::Kind::bad_file, outcome.error().message});
  }
  if (!recording_.put_evaluation(event, recorded != nullptr)) return;
  if (device_.empty()) device_ = device_in(event);
  taken(item, *outcome, event);
}

}  // namespace rekernel

#include "replay/search/ending.h"

#include <boost/json.hpp>
#include <utility>

#include "replay/trajectory/event.h"

namespace rekernel {

namespace json = boost::json;

void Ending::stop(const std::string& reason, const std::string& note) {
  const bool was_recorded = recording_.next() != nullptr;
  json::object event{{"event", "stop"}, {"reason", reason}};
  if (!note.empty()) event["note"] = note;
  event["prompt_tokens"] = tokens_.prompt;
  event["completion_tokens"] = tokens_.completion;
  recording_.put(event);
  if (!recording_.going() || goes_on(reason, was_recorded) || !recording_.going()) return;
  recording_.end(reason, note);
  if (recording_.next()) recording_.refuse_next("nothing after the stop");
}

bool Ending::may_ask(const std::vector<ModelRequest>& requests) {
  std::int64_t tokens = tokens_.sum();
  for (const ModelRequest& request : requests) tokens += estimated_tokens(request.prompt.size());
  while (recording_.going()) {
    const bool beyond = settings_.token_budget > 0 && tokens > settings_.token_budget;
    const auto reason = beyond ? std::optional<std::string>("token_budget") : outside_reason();
    if (!reason) break;
    stop(*reason);
  }
  return recording_.going();
}

/// Why the clock or a person ends the search here. They decide only where nothing is recorded
/// yet.
std::optional<std::string> Ending::outside_reason() {
  const json::object* next = recording_.next();
  if (!recording_.going()) return std::nullopt;
  if (!next) {
    if (around_.stop_asked) return "stopped";
    if (around_.deadline_reached && around_.deadline_reached()) return "deadline";
    return std::nullopt;
  }
  if (!is_event(*next, "stop")) return std::nullopt;
  const json::value* reason = next->if_contains("reason");
  for (const char* known : {"stopped", "deadline"}) {
    if (reason && *reason == known) return known;
  }
  return std::nullopt;
}

/// Whether a continuation is recorded after the stop, or wanted where nothing is recorded. One that
/// changes nothing is taken where a person or the clock ended the search, and at no limit.
bool Ending::goes_on(const std::string& reason, bool was_recorded) {
  const json::object* next = recording_.next();
  if (!recording_.going() || (next && !is_event(*next, "continue"))) return false;
  if (!next && !wants_to_go_on(reason, was_recorded)) return false;
  const Result<Continuation> continuation =
      next ? continuation_from_json(*next, settings_, recording_.where()) : wanted_continuation();
  if (!continuation) return refuse(continuation.error());
  const bool at_a_limit =
      reason != "stopped" && reason != "deadline" && reason != stop_for_unusable_replies;
  if (!next && at_a_limit && adds_nothing(*continuation, settings_)) return false;
  Result<Settings> longer = continued_settings(*continuation);
  if (!longer) return refuse(longer.error());
  // What was kept of requests that are made again is not taken for their replies.
  if (!next) recording_.forget_pending();
  recording_.put(to_json(*continuation));
  settings_ = std::move(*longer);
  memory_.expect(settings_.round_plans);
  return recording_.going();
}

/// The run that got nothing usable ends; another one tries again.
bool Ending::wants_to_go_on(const std::string& reason, bool was_recorded) const {
  if (reason == stop_for_unusable_replies) {
    return was_recorded && around_.resumed && !around_.stop_asked;
  }
  return around_.go_on && !went_on_;
}

Result<Continuation> Ending::wanted_continuation() {
  if (around_.go_on && !went_on_) {
    went_on_ = true;
    return around_.go_on(settings_);
  }
  return Continuation{settings_.rounds, settings_.token_budget, {}, ""};
}

Result<Settings> Ending::continued_settings(const Continuation& continuation) {
  const std::string where = recording_.where();
  Result<Settings> longer = continued(settings_, continuation, where);
  if (!longer) return longer;
  for (const RoundPlan& plan : continuation.round_plans) {
    Result<Ok> checked = check_round_plan(header_, plan, where);
    if (checked) checked = memory_.find_parents(plan, where);
    if (!checked) return checked.error();
  }
  return longer;
}

bool Ending::refuse(const Error& error) {
  recording_.interrupt({Interruption::Kind::bad_file, error.message});
  return false;
}

}  // namespace rekernel

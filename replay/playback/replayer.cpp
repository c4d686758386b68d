#include "replay/playback/replayer.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "harness/base/text.h"
#include "replay/playback/examination.h"
#include "replay/trajectory/trajectory.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using Kind = Interruption::Kind;

/// Stands where a live search would ask: the recording should have had the answer.
class EndOfRecording : public Model, public Evaluator {
 public:
  explicit EndOfRecording(Trajectory& trajectory) : trajectory_(trajectory) {}

  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Model::Arrived&) override {
    for (const ModelRequest& request : requests) replies.push_back(request.id);
    return trajectory_.not_as_expected("response " + requests.front().id);
  }
  std::optional<Interruption> evaluate(std::span<const EvaluationRequest> requests,
                                       const Evaluator::Arrived&) override {
    for (const EvaluationRequest& request : requests) evaluations.push_back(request.id);
    return trajectory_.not_as_expected("evaluation " + requests.front().id);
  }

  std::optional<Interruption> profile(const EvaluationRequest& request, ProfileRecord&) override {
    profiles.push_back(request.id);
    return trajectory_.not_as_expected("profile " + request.id);
  }

  /// What is not recorded, a search that asked for it may still be waiting for.
  bool keeps_replies() const override { return true; }

  std::vector<std::string> replies;      ///< that were asked for
  std::vector<std::string> evaluations;  ///< that were asked for
  std::vector<std::string> profiles;     ///< that were asked for

 private:
  Trajectory& trajectory_;
};

std::string text_of(const json::object& record, const char* key) {
  const json::value* value = record.if_contains(key);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

ReplayedCandidate replayed(const CandidateReport& report, KeepCandidates keep) {
  ReplayedCandidate candidate{report.id,
                              report.round,
                              report.idea,
                              report.model,
                              std::nullopt,
                              text_of(*report.record, "sha256"),
                              device_in(*report.record),
                              *report.outcome,
                              report.parents,
                              {}};
  if (keep == KeepCandidates::yes && report.candidate) {
    candidate.candidate = *report.candidate;
    candidate.record = *report.record;
    candidate.record.erase("chain");
  }
  return candidate;
}

std::string idea_of(const std::string& id) { return id.substr(0, id.rfind(".b")); }

/// The selections, round by round, with today's outcomes.
void compare_choices(const ReplayedSearch& search, Remeasurement& result) {
  std::set<std::string> devices(result.devices.begin(), result.devices.end());
  devices.erase("");
  const bool gpus_differ = search.header.settings.mixed_gpus || devices.size() > 1;
  std::vector<Ranked> correct;
  std::vector<std::string> survivors;
  std::size_t next = 0;
  for (const ReplayedRound& round : search.rounds) {
    for (; next < search.candidates.size() && search.candidates[next].round <= round.round;
         ++next) {
      const ReplayedCandidate& candidate = search.candidates[next];
      const std::optional<Outcome>& outcome = result.today[next];
      if (!outcome || !outcome->passed()) continue;
      correct.push_back({candidate.id, idea_of(candidate.id), candidate.round,
                         outcome->cost(gpus_differ), candidate.sha256});
    }
    survivors = select_seeds(search.header.settings, correct, round.round, survivors).survivors;
    if (survivors != round.selection.survivors) {
      result.changed.push_back({round.round, round.selection.survivors, survivors});
    }
  }
}

/// The observer, which sees each candidate once the examiner has.
SearchObserver examined(SearchObserver observer, EvaluationExaminer& examiner) {
  observer.candidate = [&examiner,
                        observe = std::move(observer.candidate)](const CandidateReport& report) {
    examiner.examine(report);
    if (observe) observe(report);
  };
  return observer;
}

}  // namespace

bool is_seed(const ReplayedCandidate& candidate) { return candidate.id.starts_with("seed."); }

SearchObserver collect_into(ReplayedSearch& search, KeepCandidates keep) {
  SearchObserver observer;
  observer.candidate = [&search, keep](const CandidateReport& report) {
    search.candidates.push_back(replayed(report, keep));
  };
  observer.selection = [&search](const SelectionReport& report) {
    search.rounds.push_back(
        {report.round, report.selection, search.prompt_tokens, search.completion_tokens});
  };
  observer.profile = [&search](const std::string& id, const ProfileRecord& profile) {
    search.profiles[id] = profile;
  };
  observer.reply = [&search](const ReplyReport& report) {
    ModelUse& use = search.models[report.model];
    ++(report.unusable.empty() ? use.replies : use.unusable);
    use.prompt_tokens += report.prompt_tokens;
    use.completion_tokens += report.completion_tokens;
    search.prompt_tokens += report.prompt_tokens;
    search.completion_tokens += report.completion_tokens;
    if (report.unusable.empty()) return;
    search.unusable.push_back({report.id, report.model, report.unusable});
  };
  return observer;
}

namespace {

/// Replays into `replay`, whose header is there before the observer is made.
void replay_into(Replay& replay, const fs::path& path,
                 const std::function<SearchObserver(const Header&)>& make_observer,
                 Unfinished unfinished) {
  const bool open_end = unfinished == Unfinished::accepted;
  Result<Trajectory> trajectory = Trajectory::open(
      path, open_end ? Trajectory::Access::read_unfinished : Trajectory::Access::read);
  if (!trajectory) {
    replay.interruption = Interruption{Kind::bad_file, trajectory.error().message};
    return;
  }
  const Result<const json::object*> first = trajectory->peek();
  if (!first || !*first) {
    replay.interruption =
        Interruption{Kind::bad_file, first ? path.string() + ": no header" : first.error().message};
    return;
  }
  Result<Header> header = header_from_json(**first, path.string() + ": line 1");
  if (!header) {
    replay.interruption = Interruption{Kind::bad_file, header.error().message};
    return;
  }
  replay.search.header = std::move(*header);
  EndOfRecording end(*trajectory);
  EvaluationExaminer examiner(replay.search.header);
  SearchEnd result =
      run_search(replay.search.header, {*trajectory, nullptr, end, end, [] { return false; },
                                        examined(make_observer(replay.search.header), examiner)});
  replay.search.stop_reason = result.reason;
  replay.search.stop_note = result.note;
  replay.search.events = trajectory->line();
  replay.interruption = std::move(result.interruption);
  const Result<bool> at_end = trajectory->at_end();
  if (open_end && replay.interruption && replay.interruption->kind == Kind::mismatch && at_end &&
      *at_end) {
    replay.interruption.reset();
    replay.awaited_replies = std::move(end.replies);
    replay.awaited_evaluations = std::move(end.evaluations);
    replay.awaited_profiles = std::move(end.profiles);
  }
  for (const std::string& line : examiner.found()) {
    if (!replay.interruption) replay.interruption = Interruption{Kind::bad_file, ""};
    std::string& message = replay.interruption->message;
    message += (message.empty() ? "" : "\n") + path.string() + ": " + line;
  }
}

}  // namespace

Replay replay_exactly(const fs::path& path, KeepCandidates keep, Unfinished unfinished) {
  Replay replay;
  const auto collect = [&](const Header&) { return collect_into(replay.search, keep); };
  replay_into(replay, path, collect, unfinished);
  return replay;
}

Replay replay_observed(const fs::path& path,
                       const std::function<SearchObserver(const Header&)>& make_observer,
                       Unfinished unfinished) {
  Replay replay;
  replay_into(replay, path, make_observer, unfinished);
  return replay;
}

std::optional<Interruption> measure_again(const ReplayedSearch& search, Evaluator& evaluator,
                                          const std::function<void(std::size_t)>& progress,
                                          Remeasurement& result) {
  std::vector<EvaluationRequest> requests;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < search.candidates.size(); ++i) {
    const ReplayedCandidate& candidate = search.candidates[i];
    if (!candidate.candidate) continue;
    requests.push_back({candidate.id, &*candidate.candidate});
    indices.push_back(i);
  }
  result.today.resize(search.candidates.size());
  result.devices.resize(search.candidates.size());
  std::optional<Interruption> trouble;
  std::size_t done = 0;
  auto interruption = evaluator.evaluate(requests, [&](std::size_t k, const json::object& record) {
    Result<Outcome> outcome = outcome_from_record(record, requests[k].id);
    if (!outcome) {
      trouble = Interruption{Kind::failed, outcome.error().message};
      return false;
    }
    result.today[indices[k]] = std::move(*outcome);
    result.devices[indices[k]] = device_in(record);
    if (progress) progress(++done);
    return true;
  });
  if (interruption) return interruption;
  if (trouble) return trouble;
  compare_choices(search, result);
  return std::nullopt;
}

std::vector<fs::path> recorded_trajectories(const fs::path& root) {
  std::vector<fs::path> paths;
  std::error_code status;
  for (fs::directory_iterator it(root / "trajectories", status), end; !status && it != end;
       it.increment(status)) {
    if (it->path().extension() == ".jsonl") paths.push_back(it->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

fs::path trajectory_path(const fs::path& root, const std::string& name) {
  std::error_code status;
  const bool bare = name.find('/') == std::string::npos && !name.ends_with(".jsonl");
  if (!bare || fs::is_regular_file(name, status)) return name;
  return root / "trajectories" / (name + ".jsonl");
}

}  // namespace rekernel

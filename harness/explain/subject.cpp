#include "harness/explain/subject.h"

#include <boost/json.hpp>

#include "harness/base/utf8.h"
#include "harness/project/candidates.h"
#include "replay/model/response.h"
#include "replay/playback/replayer.h"
#include "replay/search/read_reply.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/header.h"
#include "replay/trajectory/outcome.h"
#include "replay/trajectory/pending_journal.h"
#include "replay/trajectory/trajectory.h"

namespace rekernel {

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t longest_id = 64;

/// What a trajectory, and the journal beside it, say of one candidate.
struct CandidateEvents {
  std::optional<Header> header;
  std::string idea;
  std::optional<json::object> response, evaluation;
};

Result<CandidateEvents> events_of(const fs::path& path, const std::string& id) {
  Result<Trajectory> trajectory = Trajectory::open(path, Trajectory::Access::read_unfinished);
  if (!trajectory) return trajectory.error();
  CandidateEvents events;
  while (true) {
    const Result<const json::object*> event = trajectory->peek();
    if (!event) return event.error();
    if (!*event) break;
    if (is_event(**event, "header")) {
      Result<Header> header = header_from_json(**event, path.string());
      if (!header) return header.error();
      events.header = std::move(*header);
    }
    if (is_event(**event, "request", id)) {
      const json::value* idea = (*event)->if_contains("idea");
      if (idea && idea->is_string()) events.idea = std::string(idea->get_string());
    }
    // The event's own memory goes with the next one.
    if (is_event(**event, "response", id)) events.response.emplace(**event, json::storage_ptr());
    if (is_event(**event, "evaluation", id)) {
      events.evaluation.emplace(**event, json::storage_ptr());
    }
    if (Result<Ok> passed = trajectory->skip(); !passed) return passed.error();
  }
  if (!events.header) return Error{path.string() + ": expected a header event"};
  const Result<PendingJournal> journal = PendingJournal::open(path);
  if (!journal) return journal.error();
  const auto take = [&](const char* kind, std::optional<json::object>& into) {
    if (const json::object* found = into ? nullptr : journal->find(kind, id)) into = *found;
  };
  take("response", events.response);
  take("evaluation", events.evaluation);
  return events;
}

/// "seed.3" → 3; 0 for what is no seed.
std::size_t seed_number(const std::string& id) {
  constexpr std::string_view beginning = "seed.";
  if (!id.starts_with(beginning)) return 0;
  return static_cast<std::size_t>(std::strtoul(id.c_str() + beginning.size(), nullptr, 10));
}

Result<Candidate> candidate_of(const CandidateEvents& events, const std::string& id,
                               const fs::path& path) {
  const Header& header = *events.header;
  if (const std::size_t seed = seed_number(id); seed > 0 && seed <= header.seeds.size()) {
    const SeedCandidate& given = header.seeds[seed - 1];
    return parse_candidate(given.plan, given.source, id + "/kernel.json");
  }
  Result<ModelReply> reply = reply_from_event(*events.response, path.string());
  if (!reply) return reply.error();
  ReadReply read = read_reply(ReplyKind::kernel, std::move(*reply));
  if (!read.content) return read.content.error();
  return candidate_from_reply(
      std::get<KernelReply>(std::move(*read.content)),
      {header.problem, header.name, id, events.idea, newest_arch(header.device)});
}

/// By the record alone, where it holds no evaluation of something that compiled.
Result<Verdict> verdict_on_reply(const json::object& record, const std::string& where) {
  Result<Outcome> outcome = outcome_from_record(record, where);
  if (!outcome) return outcome.error();
  Verdict verdict;
  verdict.status = outcome->status;
  verdict.message = outcome->message;
  return verdict;
}

Result<Verdict> verdict_in(const json::object& record, const std::string& where) {
  const Result<Evaluation> evaluation = evaluation_from_record(record, where);
  Result<Verdict> verdict = evaluation ? verdict_of(*evaluation, device_in(record), where)
                                       : verdict_on_reply(record, where);
  if (verdict) {
    verdict->source = where;
    verdict->device = device_in(record);
    if (verdict->device.empty()) verdict->device = "no device";
  }
  return verdict;
}

/// From the project's root where it lies there.
std::string shown_path(const fs::path& root, const fs::path& path) {
  const fs::path relative = path.lexically_relative(root);
  const bool inside = !relative.empty() && *relative.begin() != "..";
  return (inside ? relative : path).string();
}

}  // namespace

Result<ExplainedCandidate> subject_in_folder(const fs::path& root, const std::string& what) {
  const Result<fs::path> folder = candidate_folder(what);
  if (!folder) return folder.error();
  std::error_code ignored;
  if (!fs::exists(*folder / "kernel.json", ignored)) {
    return Error{what +
                 ": expected a candidate folder with kernel.json, PROBLEM/NAME of a "
                 "committed kernel, or a search and a candidate of it"};
  }
  ExplainedCandidate subject;
  subject.place = shown_path(root, *folder);
  Result<Candidate> candidate = load_candidate(*folder);
  if (!candidate) {
    subject.name = folder->filename().string();
    subject.refusal = candidate.error().message;
    return subject;
  }
  subject.name = candidate->problem + "/" + candidate->name;
  Result<std::vector<Verdict>> verdicts =
      recorded_verdicts(root, candidate->problem, candidate_sha256(*candidate));
  if (!verdicts) return verdicts.error();
  subject.verdicts = std::move(*verdicts);
  subject.candidate = std::move(*candidate);
  return subject;
}

Result<ExplainedCandidate> subject_of_search(const fs::path& root, const std::string& search,
                                             const std::string& id) {
  const fs::path path = trajectory_path(root, search);
  const Result<CandidateEvents> events = events_of(path, id);
  if (!events) return events.error();
  const bool is_seed = seed_number(id) > 0 && seed_number(id) <= events->header->seeds.size();
  if (!events->response && !is_seed) {
    return Error{path.string() + ": no reply for candidate \"" + one_line(id, longest_id) +
                 "\"; `rekernel replay " + search + " --table` lists the candidates"};
  }
  ExplainedCandidate subject;
  subject.name = events->header->name + " " + id;
  subject.place = shown_path(root, path);
  Result<Candidate> candidate = candidate_of(*events, id, path);
  if (candidate) {
    subject.candidate = std::move(*candidate);
  } else {
    subject.refusal = candidate.error().message;
  }
  if (events->evaluation) {
    Result<Verdict> verdict = verdict_in(*events->evaluation, subject.place);
    if (!verdict) return verdict.error();
    subject.verdicts.push_back(std::move(*verdict));
  }
  return subject;
}

}  // namespace rekernel

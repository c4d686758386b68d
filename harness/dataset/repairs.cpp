#include "harness/dataset/repairs.h"

#include <boost/json.hpp>

#include "harness/dataset/comparisons.h"
#include "harness/dataset/rows.h"

namespace rekernel {

namespace json = boost::json;

namespace {

std::string reply_to(const RoundMemory& round, const std::string& id) {
  const KeptRequest* request = round.find_request(id);
  return request && request->taken() ? request->taken()->text : "";
}

/// The last reply to a request counts as it is, usable or not.
bool is_of_use(const RoundMemory& round, const KeptRequest& request) {
  if (request.kind == ReplyKind::ideas) return true;
  for (const KeptCandidate& one : round.candidates) {
    if (one.id == request.id) return one.candidate.has_value();
  }
  return false;
}

void asked_again(const RoundMemory& round, std::vector<Repair>& repairs) {
  for (const KeptRequest& request : round.requests) {
    for (std::size_t i = 0; i + 1 < request.replies.size(); ++i) {
      const KeptReply& failed = request.replies[i];
      const KeptReply& repaired = request.replies[i + 1];
      if (!repaired.unusable.empty() || !is_of_use(round, request)) continue;
      repairs.push_back({request.id + "#" + std::to_string(i + 1),
                         request.id,
                         {failed.text, repaired.text},
                         request.round,
                         {{"kind", "asked_again"},
                          {"prompt", json::array{chat_turn("user", request.prompt.text())}},
                          {"failed_reply", failed.text},
                          {"failed_message", failed.unusable},
                          {"repaired_reply", repaired.text}}});
    }
  }
}

void add_failed(json::object& columns, const KeptCandidate& failed, const std::string& reply) {
  columns["failed_id"] = failed.row_id;
  columns["failed_round"] = failed.round;
  columns["failed_status"] = to_string(failed.outcome.status);
  columns["failed_message"] = failed.outcome.message;
  columns["failed_compile_log"] = failed.outcome.compile_log;
  columns["failed_reply"] = reply;
  if (failed.candidate) columns["failed_code"] = failed.candidate->program.source;
}

void add_repaired(json::object& columns, const KeptCandidate& repaired, const RoundMemory& round) {
  columns["repaired_id"] = repaired.row_id;
  columns["repaired_status"] = to_string(repaired.outcome.status);
  columns["repaired_ns"] = *repaired.outcome.median_ns;
  columns["repaired_reply"] = reply_to(round, repaired.id);
  columns["repaired_code"] = repaired.candidate->program.source;
  if (const KeptRequest* request = round.find_request(repaired.id)) {
    columns["prompt"] = json::array{chat_turn("user", request->prompt.text())};
  }
}

Repair repair_of(const char* kind, const KeptCandidate& failed, const std::string& failed_reply,
                 const KeptCandidate& repaired, const RoundMemory& round) {
  Repair repair{failed.id, repaired.id, {failed.row_id, repaired.row_id}, repaired.round, {}};
  repair.columns["kind"] = kind;
  add_failed(repair.columns, failed, failed_reply);
  add_repaired(repair.columns, repaired, round);
  if (failed.candidate) repair.columns["similarity"] = similarity(failed.sketch, repaired.sketch);
  return repair;
}

const KeptCandidate* best_of_idea(const RoundMemory& round, const std::string& idea) {
  std::vector<const KeptCandidate*> candidates;
  for (const KeptCandidate& one : round.candidates) {
    if (one.outcome.passed() && one.candidate && one.idea_id() == idea) candidates.push_back(&one);
  }
  rank(candidates);
  return candidates.empty() ? nullptr : candidates.front();
}

const KeptCandidate* most_like(const RoundMemory& round, const KeptCandidate& failed) {
  const KeptCandidate* nearest = nullptr;
  double most = Repairs::least_similarity;
  for (const KeptCandidate& one : round.candidates) {
    if (!one.outcome.passed() || !one.candidate) continue;
    const double likeness = similarity(failed.sketch, one.sketch);
    if (likeness < most || (nearest && likeness == most)) continue;
    nearest = &one;
    most = likeness;
  }
  return nearest;
}

}  // namespace

std::vector<Repair> Repairs::in_round(const RoundMemory& round) {
  std::vector<Repair> repairs;
  asked_again(round, repairs);
  std::vector<Waiting> still_waiting;
  for (Waiting& one : waiting_) {
    if (const KeptCandidate* repaired = most_like(round, one.candidate)) {
      repairs.push_back(repair_of("later_round", one.candidate, one.reply, *repaired, round));
    } else if (--one.rounds_left > 0) {
      still_waiting.push_back(std::move(one));
    }
  }
  waiting_ = std::move(still_waiting);
  for (const KeptCandidate& failed : round.candidates) {
    if (failed.outcome.passed()) continue;
    const std::string reply = reply_to(round, failed.id);
    if (const KeptCandidate* repaired = best_of_idea(round, failed.idea_id())) {
      repairs.push_back(repair_of("same_idea", failed, reply, *repaired, round));
    }
    if (failed.candidate) waiting_.push_back({failed, reply});
  }
  return repairs;
}

}  // namespace rekernel

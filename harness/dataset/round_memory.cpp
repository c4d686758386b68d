#include "harness/dataset/round_memory.h"

#include <algorithm>

namespace rekernel {

namespace {

/// What the prompt shows of the search's own kernels: survivors, then the bank.
std::vector<ShownParent> parents_in(const PromptParts& parts) {
  std::vector<ShownParent> parents;
  for (const std::vector<ShownKernel>* kernels : {&parts.survivors, &parts.bank}) {
    for (const ShownKernel& kernel : *kernels) {
      Result<Candidate> candidate = parse_candidate(kernel.plan, kernel.source, kernel.id);
      if (candidate) parents.push_back({kernel.id, std::move(*candidate)});
    }
  }
  return parents;
}

}  // namespace

const KeptReply* KeptRequest::taken() const {
  return !replies.empty() && replies.back().unusable.empty() ? &replies.back() : nullptr;
}

std::string KeptCandidate::idea_id() const { return id.substr(0, id.rfind(".b")); }

const KeptRequest* RoundMemory::find_request(const std::string& id) const {
  const auto found = request_of.find(id);
  return found == request_of.end() ? nullptr : &requests[found->second];
}

void RoundMemory::note(const RequestReport& report) {
  const bool first_kernel = report.kind == ReplyKind::kernel &&
                            (requests.empty() || requests.back().kind != ReplyKind::kernel);
  if (first_kernel) parents = parents_in(*report.parts);
  request_of[report.request->id] = requests.size();
  requests.push_back({report.request->id,
                      report.kind,
                      report.round,
                      report.request->model,
                      report.request->prompt,
                      ids_of(*report.parts),
                      report.idea ? report.idea->title : "",
                      {}});
}

void RoundMemory::note(const ReplyReport& report) {
  const auto request = request_of.find(report.id);
  if (request == request_of.end()) return;
  requests[request->second].replies.push_back(
      {report.reply->text, report.reply->failure, report.unusable, report.reply->truncated,
       report.reply->prompt_tokens && report.reply->completion_tokens, report.prompt_tokens,
       report.completion_tokens});
}

}  // namespace rekernel

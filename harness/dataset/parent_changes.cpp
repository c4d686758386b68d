#include "harness/dataset/parent_changes.h"

#include <deque>
#include <vector>

#include "harness/candidate/code.h"
#include "replay/report/walk.h"

namespace rekernel {

Result<ParentChanges> parent_changes(const RoundMemory& round, TextComparer& comparer) {
  ParentChanges changes;
  if (round.parents.empty()) return changes;
  const ShownParent& parent = round.parents.front();
  const std::string parents_plan = plan_that_runs(parent.candidate);
  const std::string code = "/" + code_file(Language::cuda);
  const std::string plan = "/kernel.json";
  std::vector<std::string> ids;
  std::deque<std::string> plans;  // whose texts stay where they are
  std::vector<TextPair> pairs;
  for (const KeptCandidate& one : round.candidates) {
    if (!one.candidate || one.parents.empty()) continue;
    ids.push_back(one.id);
    plans.push_back(plan_that_runs(*one.candidate));
    pairs.push_back({{parent.id + code, parent.candidate.program.source},
                     {one.id + code, one.candidate->program.source}});
    pairs.push_back({{parent.id + plan, parents_plan}, {one.id + plan, plans.back()}});
  }
  Result<std::vector<std::string>> texts = comparer.differences(pairs);
  if (!texts) return texts.error();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    changes[ids[i]] = {std::move((*texts)[2 * i]), std::move((*texts)[2 * i + 1])};
  }
  return changes;
}

}  // namespace rekernel

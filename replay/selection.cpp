#include "replay/selection.h"

#include <algorithm>
#include <set>

namespace rekernel {

Selection select_seeds(const Settings& settings, std::span<const Ranked> correct, int round,
                       const std::vector<std::string>& previous_survivors) {
  std::vector<const Ranked*> by_time;
  for (const Ranked& candidate : correct) by_time.push_back(&candidate);
  std::stable_sort(by_time.begin(), by_time.end(),
                   [](const Ranked* a, const Ranked* b) { return a->median_ns < b->median_ns; });
  const bool round_has_any = std::any_of(correct.begin(), correct.end(),
                                         [&](const Ranked& one) { return one.round == round; });
  const bool carry = !(settings.chain && round_has_any);
  const auto in_pool = [&](const Ranked& candidate) {
    return candidate.round == round ||
           (carry && std::find(previous_survivors.begin(), previous_survivors.end(),
                               candidate.id) != previous_survivors.end());
  };

  Selection selection;
  std::set<std::string> hashes;
  for (const Ranked* candidate : by_time) {
    if (selection.survivors.size() == static_cast<std::size_t>(settings.survivors)) break;
    if (in_pool(*candidate) && hashes.insert(candidate->sha256).second) {
      selection.survivors.push_back(candidate->id);
    }
  }
  std::set<std::string> ideas;
  for (const Ranked* candidate : by_time) {
    if (selection.bank.size() == static_cast<std::size_t>(settings.bank)) break;
    if (!ideas.contains(candidate->idea) && hashes.insert(candidate->sha256).second) {
      selection.bank.push_back(candidate->id);
      ideas.insert(candidate->idea);
    }
  }
  return selection;
}

}  // namespace rekernel

#include "replay/search/selection.h"

#include <algorithm>
#include <set>

namespace rekernel {
namespace {

/// Slower, or as fast and found later; both are in one list of candidates.
bool later(const Ranked* a, const Ranked* b) {
  return a->cost != b->cost ? a->cost > b->cost : a > b;
}

}  // namespace

Selection select_seeds(const Settings& settings, std::span<const Ranked> correct, int round,
                       const std::vector<std::string>& previous_survivors) {
  const bool round_has_any = std::any_of(correct.begin(), correct.end(),
                                         [&](const Ranked& one) { return one.round == round; });
  const bool carry = !(settings.chain && round_has_any);
  const auto in_pool = [&](const Ranked& candidate) {
    return candidate.round == round ||
           (carry && std::find(previous_survivors.begin(), previous_survivors.end(),
                               candidate.id) != previous_survivors.end());
  };

  std::vector<const Ranked*> pool;
  std::vector<const Ranked*> all;
  for (const Ranked& candidate : correct) {
    all.push_back(&candidate);
    if (in_pool(candidate)) pool.push_back(&candidate);
  }
  std::sort(pool.begin(), pool.end(), [](const Ranked* a, const Ranked* b) { return later(b, a); });

  Selection selection;
  std::set<std::string> hashes;
  for (const Ranked* candidate : pool) {
    if (selection.survivors.size() == static_cast<std::size_t>(settings.survivors)) break;
    if (hashes.insert(candidate->sha256).second) selection.survivors.push_back(candidate->id);
  }
  // Only the few fastest of all correct ones, which only get more, are looked at.
  std::make_heap(all.begin(), all.end(), later);
  std::set<std::string> ideas;
  while (!all.empty() && selection.bank.size() < static_cast<std::size_t>(settings.bank)) {
    std::pop_heap(all.begin(), all.end(), later);
    const Ranked* candidate = all.back();
    all.pop_back();
    if (!ideas.contains(candidate->idea) && hashes.insert(candidate->sha256).second) {
      selection.bank.push_back(candidate->id);
      ideas.insert(candidate->idea);
    }
  }
  return selection;
}

}  // namespace rekernel

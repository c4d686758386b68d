#include "replay/search/selection.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

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

/// A kernel gets into the bank if no idea or hash like its own was taken before it. Survivors take
/// up to S hashes, the bank up to B ideas and B hashes. So a kernel is never taken once there are,
/// before it, S + B of its idea with different hashes, or B of its hash with different ideas, or
/// one of both, or S + 2 B that differ from each other in both.
void forget_beaten(const Settings& settings, const std::vector<std::string>& survivors,
                   std::vector<Ranked>& correct) {
  const auto most_survivors = static_cast<std::size_t>(settings.survivors);
  const auto bank = static_cast<std::size_t>(settings.bank);
  std::vector<const Ranked*> fastest_first;
  for (const Ranked& one : correct) fastest_first.push_back(&one);
  std::sort(fastest_first.begin(), fastest_first.end(),
            [](const Ranked* a, const Ranked* b) { return later(b, a); });

  std::map<std::string, std::set<std::string>> hashes_of_idea;
  std::map<std::string, std::set<std::string>> ideas_of_hash;
  std::set<std::string> ideas;  // of kernels that differ from each other in both
  std::set<std::string> hashes;
  std::set<const Ranked*> kept;
  for (const Ranked* one : fastest_first) {
    if (std::find(survivors.begin(), survivors.end(), one->id) != survivors.end()) kept.insert(one);
    if (ideas.size() == most_survivors + 2 * bank) continue;
    std::set<std::string>& same_idea = hashes_of_idea[one->idea];
    std::set<std::string>& same_hash = ideas_of_hash[one->sha256];
    if (same_idea.size() == most_survivors + bank || same_hash.size() == bank ||
        same_idea.contains(one->sha256)) {
      continue;
    }
    kept.insert(one);
    same_idea.insert(one->sha256);
    same_hash.insert(one->idea);
    if (!ideas.contains(one->idea) && !hashes.contains(one->sha256)) {
      ideas.insert(one->idea);
      hashes.insert(one->sha256);
    }
  }
  std::vector<Ranked> rest;
  for (const Ranked& one : correct) {
    if (kept.contains(&one)) rest.push_back(one);
  }
  correct = std::move(rest);
}

}  // namespace rekernel

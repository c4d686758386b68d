#include "replay/search/candidate_memory.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <utility>

#include "harness/base/utf8.h"

namespace rekernel {

void CandidateMemory::expect(const std::vector<RoundPlan>& plans) {
  for (const RoundPlan& plan : plans) {
    for (const std::string& id : plan.parents.value_or(std::vector<std::string>{})) {
      needed_until_[id] = std::max(needed_until_[id], plan.round);
    }
  }
}

void CandidateMemory::add(int round, const WaveItem& item, const Outcome& outcome,
                          const boost::json::object& event, bool gpus_differ) {
  std::string line = outcome_line(outcome);
  if (const std::string gpu = device_in(event); gpus_differ && !gpu.empty()) line += ", on " + gpu;
  history_.add({item.id, item.idea.title, outcome.passed(), line, prompt_log(outcome)});
  if (!item.candidate) return;
  if (outcome.passed()) {
    correct_.push_back({item.id, item.idea_id, round, outcome.cost(gpus_differ),
                        std::string(event.at("sha256").as_string())});
  }
  if (outcome.passed() || needed_until_.contains(item.id)) {
    kept_[item.id] = {std::move(line), item.candidate, outcome.passed(), ""};
  }
}

const Selection& CandidateMemory::select(const Settings& settings, int round) {
  selection_ = select_seeds(settings, correct_, round, selection_.survivors);
  forget_beaten(settings, selection_.survivors, correct_);
  forget_sources(round);
  return selection_;
}

void CandidateMemory::forget_sources(int round) {
  std::set<std::string> used(selection_.survivors.begin(), selection_.survivors.end());
  used.insert(selection_.bank.begin(), selection_.bank.end());
  std::erase_if(kept_, [&](const auto& entry) {
    const auto needed = needed_until_.find(entry.first);
    const bool later = needed != needed_until_.end() && needed->second > round;
    return !used.contains(entry.first) && !later;
  });
  std::erase_if(profiles_, [&](const auto& entry) {
    return !kept_.contains(entry.first) && !seeds_.contains(entry.first);
  });
}

std::vector<ShownCandidate> CandidateMemory::without_profile(const Settings& settings,
                                                             int round) const {
  std::vector<ShownCandidate> candidates;
  for (const std::string& id : parents(settings, round)) {
    const auto kept = kept_.find(id);
    const bool listed = std::any_of(candidates.begin(), candidates.end(),
                                    [&](const ShownCandidate& one) { return one.id == id; });
    const bool wanted = kept != kept_.end() && kept->second.passed;
    if (!wanted || profiles_.contains(id) || listed) continue;
    candidates.push_back({id, kept->second.candidate});
  }
  return candidates;
}

void CandidateMemory::add_profile(const std::string& id, const ProfileRecord& profile) {
  profiles_[id] = prompt_profile(profile);
}

std::vector<std::string> CandidateMemory::parents(const Settings& settings, int round) const {
  const RoundPlan* plan = settings.plan_of(round);
  if (plan && plan->parents) return *plan->parents;
  std::vector<std::string> ids = selection_.survivors;
  ids.insert(ids.end(), selection_.bank.begin(), selection_.bank.end());
  return ids;
}

Result<Ok> CandidateMemory::find_parents(const RoundPlan& plan, const std::string& where) {
  for (const std::string& id : plan.parents.value_or(std::vector<std::string>{})) {
    if (kept_.contains(id)) continue;
    const auto seed = seeds_.find(id);
    if (seed == seeds_.end()) {
      return Error{where + ": round_plans: round " + std::to_string(plan.round) +
                   ": parents: expected a seed, a survivor or a kernel of the bank, got \"" +
                   one_line(id, 64) + "\""};
    }
    kept_[id] = seed->second;
  }
  return Ok{};
}

PromptParts CandidateMemory::prompt_parts(const Settings& settings, int round) {
  PromptParts parts;
  parts.history = &history_;
  const RoundPlan* plan = settings.plan_of(round);
  if (plan && plan->parents) {
    parts.survivors = shown(*plan->parents);
  } else {
    parts.survivors = shown(selection_.survivors);
    parts.bank = shown(selection_.bank);
  }
  for (const std::string& name : plan ? plan->bank_kernels : std::vector<std::string>{}) {
    const LibraryKernel& kernel = *header_.find_library_kernel(name);
    parts.library.push_back({kernel.name, kernel.note, kernel.plan, kernel.source, ""});
  }
  return parts;
}

/// A planned parent whose reply held no candidate has nothing to show.
std::vector<ShownKernel> CandidateMemory::shown(const std::vector<std::string>& ids) {
  std::vector<ShownKernel> kernels;
  for (const std::string& id : ids) {
    const auto found = kept_.find(id);
    if (found == kept_.end()) continue;
    Kept& kept = found->second;
    if (kept.plan.empty()) kept.plan = candidate_json(*kept.candidate);
    const auto profile = profiles_.find(id);
    kernels.push_back({id, kept.caption, kept.plan, kept.candidate->program.source,
                       profile == profiles_.end() ? "" : profile->second});
  }
  return kernels;
}

}  // namespace rekernel

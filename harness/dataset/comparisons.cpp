#include "harness/dataset/comparisons.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/dataset/rows.h"

namespace rekernel {

namespace json = boost::json;

namespace {

const Percent* share_of(const KeptCandidate& candidate) {
  const ReferenceResult* headline = candidate.evaluation.headline();
  return headline && headline->percent_of_reference ? &*headline->percent_of_reference : nullptr;
}

double rank_value(const KeptCandidate& candidate) {
  if (!candidate.outcome.passed()) return -1;
  const Percent* share = share_of(candidate);
  if (share) return share->value;
  return 1.0 / static_cast<double>(std::max<std::int64_t>(*candidate.outcome.median_ns, 1));
}

}  // namespace

std::optional<Advantage> advantage(const KeptCandidate& better, const KeptCandidate& worse) {
  if (!better.outcome.passed()) return std::nullopt;
  if (!worse.outcome.passed()) return Advantage{.by_verdict = true};
  const Percent* own = share_of(better);
  const Percent* others = share_of(worse);
  const bool comparable = own && others && better.device() == worse.device() &&
                          better.outcome.reference == worse.outcome.reference;
  if (!comparable || !(others->low > 0) || !(others->high > 0)) return std::nullopt;
  Advantage by;
  by.speedup = own->value / others->value;
  by.speedup_low = own->low / others->high;
  by.speedup_high = own->high / others->low;
  if (!(by.speedup_low > 1)) return std::nullopt;
  return by;
}

void rank(std::vector<const KeptCandidate*>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto* a, const auto* b) { return rank_value(*a) > rank_value(*b); });
}

std::vector<Preference> preferences_among(std::vector<const KeptCandidate*> candidates) {
  rank(candidates);
  std::vector<Preference> preferences;
  const auto add = [&](std::size_t better, std::size_t worse) {
    if (const auto by = advantage(*candidates[better], *candidates[worse])) {
      preferences.push_back({candidates[better], candidates[worse], *by});
    }
  };
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    add(0, i);
    if (i > 1) add(i - 1, i);
  }
  return preferences;
}

void add_preference_columns(boost::json::object& row, const Preference& preference) {
  const KeptCandidate& better = *preference.better;
  const KeptCandidate& worse = *preference.worse;
  row["chosen_id"] = better.row_id;
  row["rejected_id"] = worse.row_id;
  row["chosen_status"] = to_string(better.outcome.status);
  row["rejected_status"] = to_string(worse.outcome.status);
  row["rejected_message"] = worse.outcome.message;
  row["device"] = better.device();
  row["by"] = preference.by.by_verdict ? "verdict" : "time";
  row["chosen_ns"] = *better.outcome.median_ns;
  if (preference.by.by_verdict) return;
  row["rejected_ns"] = *worse.outcome.median_ns;
  row["speedup"] = preference.by.speedup;
  row["speedup_low"] = preference.by.speedup_low;
  row["speedup_high"] = preference.by.speedup_high;
  row["beyond_noise"] = preference.by.speedup_low - 1;
}

void add_what_followed(json::object& row, const std::vector<const KeptCandidate*>& candidates,
                       const std::set<std::string>& survivors) {
  json::array ids;
  for (const KeptCandidate* candidate : candidates) ids.push_back(json::string(candidate->row_id));
  row["candidates"] = std::move(ids);
  if (candidates.empty()) return;
  std::vector<const KeptCandidate*> ranked = candidates;
  rank(ranked);
  const KeptCandidate& best = *ranked.front();
  row["status"] = to_string(best.outcome.status);
  row["outcome"] = outcome_line(best.outcome);
  row["survived"] = survivors.contains(best.id);
  if (!best.outcome.passed()) return;
  row["badges"] = json::value_from(best.outcome.badges.names());
  row["median_ns"] = *best.outcome.median_ns;
  const ReferenceResult* headline = best.evaluation.headline();
  if (headline && headline->percent_of_reference) {
    row["percent_of_reference"] = number_column(headline->percent_of_reference->value);
  }
}

}  // namespace rekernel

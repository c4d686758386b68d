#include "replay/report/study_results.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "harness/base/text.h"
#include "harness/records/report.h"
#include "replay/report/metrics.h"

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr std::array thresholds = {0.5, 1.0, 1.5, 2.0, 4.0, 8.0};

void take(std::optional<BestOf>& best, const ReplayedCandidate& candidate, int round) {
  const std::int64_t time_ns = *candidate.outcome.median_ns;
  if (!best || time_ns < best->time_ns) best = BestOf{candidate.id, round, time_ns};
}

bool shows(const ReplayedCandidate& candidate, const std::string& id) {
  const auto& parents = candidate.parents;
  return std::find(parents.begin(), parents.end(), id) != parents.end();
}

/// Candidates are in the order of their rounds and ids.
Line line_of(const ReplayedSearch& search) {
  Line line;
  const Settings& settings = search.header.settings;
  for (const ReplayedCandidate& candidate : search.candidates) {
    const int round = candidate.round - settings.first_round + 1;
    if (is_seed(candidate)) {
      if (!line.best && candidate.outcome.passed()) take(line.best, candidate, 0);
      continue;
    }
    if (!line.best || round <= line.rounds) continue;
    if (round > line.rounds + 1 || round > settings.rounds) break;
    if (!shows(candidate, line.best->id)) continue;
    ++line.rounds;
    if (candidate.outcome.passed()) take(line.best, candidate, round);
  }
  return line;
}

double speedup_of(const Outcome& outcome) {
  if (!outcome.passed() || outcome.reference_ns <= 0) return 0;
  return static_cast<double>(outcome.reference_ns) / static_cast<double>(*outcome.median_ns);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

json::value json_of(const std::optional<BestOf>& best) {
  if (!best) return nullptr;
  return {{"id", best->id}, {"round", best->round}, {"time_ns", best->time_ns}};
}

std::string time_cell(const std::optional<BestOf>& best) {
  return best ? milliseconds(best->time_ns) : "–";
}

std::string factor_cell(const std::optional<double>& factor) {
  return factor ? printed("%.2f", *factor) : "–";
}

/// "1, 0, 2, 0, 4 and 3".
std::string counts_text(const std::vector<std::int64_t>& counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == counts.size() ? " and " : ", ") + std::to_string(counts[i]);
  }
  return text;
}

/// The median of the factors that are there; nothing without any.
template <class Factor>
std::optional<double> median_of(const std::vector<StudiedSearch>& searches, const Factor& factor) {
  std::vector<double> values;
  for (const StudiedSearch& search : searches) {
    if (const std::optional<double> value = factor(search)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return median(std::move(values));
}

std::string branching_text(const std::vector<StudiedSearch>& searches) {
  const auto first = median_of(
      searches, [](const StudiedSearch& one) { return beside_best(one, one.best_of_first_round); });
  const auto line =
      median_of(searches, [](const StudiedSearch& one) { return beside_best(one, one.line.best); });
  std::int64_t ended = 0;
  for (const StudiedSearch& search : searches) {
    ended += search.line.rounds + 1 < static_cast<int>(search.best_so_far.size());
  }
  return "Beside the best of all, the best of round 1 alone takes " + factor_cell(first) +
         " times as long, and the best of one line of refinement " + factor_cell(line) +
         " times (medians over the problems; " + std::to_string(ended) +
         " of the lines ended before the last round, since no prompt showed their kernel any "
         "more).";
}

/// The best's speed-up in the median, of the searches with profiles and of those without.
std::string profiles_text(const std::vector<StudiedSearch>& searches) {
  std::array<std::vector<StudiedSearch>, 2> halves;
  for (const StudiedSearch& search : searches) halves[search.profiled ? 1 : 0].push_back(search);
  if (halves[0].empty() || halves[1].empty()) return "";
  const auto of = [](const std::vector<StudiedSearch>& half) {
    return printed("%.2f", figures_of(half).median_speedup) + " times as fast as the reference (" +
           counted(half.size(), "problem") + ")";
  };
  return " With a profiler's words in their prompts, the best are in the median " + of(halves[1]) +
         "; without, " + of(halves[0]) +
         ". Each search is of another problem, and these are few: the difference proves nothing.";
}

}  // namespace

double StudiedSearch::best_speedup() const {
  return speedups.empty() ? 0 : *std::max_element(speedups.begin(), speedups.end());
}

StudiedSearch studied(const ReplayedSearch& search, bool profiled) {
  const Settings& settings = search.header.settings;
  StudiedSearch result;
  result.name = search.header.name;
  result.problem = search.header.problem;
  result.profiled = profiled;
  result.whole = search.stop_reason == "rounds";
  result.best_so_far.resize(static_cast<std::size_t>(settings.rounds) + 1);
  for (const ReplayedCandidate& candidate : search.candidates) {
    const Outcome& outcome = candidate.outcome;
    if (result.device.empty()) result.device = candidate.device;
    if (result.reference.empty()) result.reference = outcome.reference;
    const int round = candidate.round - settings.first_round + 1;
    if (round > settings.rounds) continue;  // of a continuation, which does not count
    if (is_seed(candidate)) {
      if (outcome.passed() && result.seed_ns == 0) result.seed_ns = *outcome.median_ns;
    } else {
      ++result.candidates;
      result.correct += outcome.passed();
      result.speedups.push_back(speedup_of(outcome));
    }
    if (!outcome.passed()) continue;
    take(result.best, candidate, round);
    if (round == 1) take(result.best_of_first_round, candidate, round);
    for (std::size_t i = static_cast<std::size_t>(round); i < result.best_so_far.size(); ++i) {
      take(result.best_so_far[i], candidate, round);
    }
  }
  result.line = line_of(search);
  return result;
}

StudyFigures figures_of(const std::vector<StudiedSearch>& searches) {
  StudyFigures figures;
  std::vector<TaskResult> tasks;
  std::vector<double> bests;
  std::int64_t fewest = searches.front().candidates;
  for (const StudiedSearch& search : searches) {
    figures.candidates += search.candidates;
    figures.correct += search.correct;
    fewest = std::min(fewest, search.candidates);
    bests.push_back(search.best_speedup());
    tasks.push_back({search.correct > 0, bests.back()});
    figures.first_found.resize(std::max(figures.first_found.size(), search.best_so_far.size()));
    if (search.best) ++figures.first_found[static_cast<std::size_t>(search.best->round)];
  }
  figures.median_speedup = median(bests);
  for (const double p : thresholds) figures.fast_p.emplace_back(p, fast_p(tasks, p));
  for (std::int64_t k = 1; k <= fewest; k *= 2) {
    double pass = 0, speedup = 0;
    for (const StudiedSearch& search : searches) {
      pass += pass_at_k(search.candidates, search.correct, k);
      speedup += speedup_at_k(search.speedups, k);
    }
    const auto count = static_cast<double>(searches.size());
    figures.pass_at.emplace_back(k, pass / count);
    figures.speedup_at.emplace_back(k, speedup / count);
  }
  return figures;
}

std::optional<double> beside_best(const StudiedSearch& search, const std::optional<BestOf>& other) {
  if (!search.best || !other) return std::nullopt;
  return static_cast<double>(other->time_ns) / static_cast<double>(search.best->time_ns);
}

Table study_table(const std::vector<StudiedSearch>& searches) {
  Table table;
  table.columns = {{"problem"}, {"profiles"}, {"right", true}, {"seed ms", true}};
  std::size_t rounds = 0;
  for (const StudiedSearch& search : searches) {
    rounds = std::max(rounds, search.best_so_far.size());
  }
  for (std::size_t round = 1; round < rounds; ++round) {
    table.columns.push_back({"after " + std::to_string(round), true});
  }
  for (const char* heading : {"found in", "× reference", "round 1 alone", "one line"}) {
    table.columns.push_back({heading, true});
  }
  for (const StudiedSearch& search : searches) {
    std::vector<std::string> cells = {
        search.problem, search.profiled ? "yes" : "",
        std::to_string(search.correct) + "/" + std::to_string(search.candidates),
        search.seed_ns > 0 ? milliseconds(search.seed_ns) : "–"};
    for (std::size_t round = 1; round < rounds; ++round) {
      cells.push_back(round < search.best_so_far.size() ? time_cell(search.best_so_far[round])
                                                        : "–");
    }
    cells.push_back(search.best ? "round " + std::to_string(search.best->round) : "–");
    cells.push_back(search.best_speedup() > 0 ? printed("%.2f", search.best_speedup()) : "–");
    cells.push_back(factor_cell(beside_best(search, search.best_of_first_round)));
    cells.push_back(factor_cell(beside_best(search, search.line.best)));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string study_text(const std::vector<StudiedSearch>& searches) {
  const StudyFigures figures = figures_of(searches);
  const auto at = [](const std::vector<std::pair<std::int64_t, double>>& pairs,
                     const char* format) {
    std::string text;
    for (const auto& [k, value] : pairs) {
      text +=
          (text.empty() ? "" : ", ") + printed(format, value) + " (k = " + std::to_string(k) + ")";
    }
    return text;
  };
  std::string fast;
  for (const auto& [p, share] : figures.fast_p) {
    fast += (fast.empty() ? "" : ", ") + printed("%.0f%%", 100 * share) +
            " (p = " + printed("%g", p) + ")";
  }
  return "The best kernel was first found in the seed's round and rounds 1 to " +
         std::to_string(figures.first_found.size() - 1) + ": " + counts_text(figures.first_found) +
         " times. " + std::to_string(figures.correct) + " of " +
         std::to_string(figures.candidates) +
         " candidates were right. In the median, the best are " +
         printed("%.2f", figures.median_speedup) +
         " times as fast as the reference. fast_p: " + fast +
         ". pass@k: " + at(figures.pass_at, "%.2f") +
         ". speedup@k: " + at(figures.speedup_at, "%.2f") + ". " + branching_text(searches) +
         profiles_text(searches);
}

json::object to_json(const std::vector<StudiedSearch>& searches) {
  json::array rows;
  for (const StudiedSearch& search : searches) {
    json::array so_far;
    for (const auto& best : search.best_so_far) so_far.push_back(json_of(best));
    rows.push_back(
        {{"name", search.name},
         {"problem", search.problem},
         {"profiled", search.profiled},
         {"whole", search.whole},
         {"device", search.device},
         {"reference", search.reference},
         {"candidates", search.candidates},
         {"correct", search.correct},
         {"seed_ns", search.seed_ns},
         {"best", json_of(search.best)},
         {"best_speedup", search.best_speedup()},
         {"best_so_far", std::move(so_far)},
         {"best_of_first_round", json_of(search.best_of_first_round)},
         {"line", {{"best", json_of(search.line.best)}, {"rounds", search.line.rounds}}}});
  }
  const StudyFigures figures = figures_of(searches);
  const auto pairs = [](const auto& list) {
    json::array entries;
    for (const auto& [key, value] : list) entries.push_back(json::array{key, value});
    return entries;
  };
  return {{"searches", std::move(rows)},
          {"candidates", figures.candidates},
          {"correct", figures.correct},
          {"first_found", json::value_from(figures.first_found)},
          {"median_speedup", figures.median_speedup},
          {"fast_p", pairs(figures.fast_p)},
          {"pass_at", pairs(figures.pass_at)},
          {"speedup_at", pairs(figures.speedup_at)}};
}

}  // namespace rekernel

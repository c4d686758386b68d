#include "replay/report/replay_report.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "replay/report/metrics.h"

namespace rekernel {
namespace {

namespace json = boost::json;

std::string decimal(double value) { return printed("%.3g", value); }

std::string joined_or_none(const std::vector<std::string>& words) {
  const std::string text = joined(words);
  return text.empty() ? "none" : text;
}

std::string time_text(std::int64_t nanoseconds) {
  return nanoseconds > 0 ? milliseconds(nanoseconds) : "";
}

std::string percent_or_blank(std::int64_t permille) {
  return permille > 0 ? percent_of_permille(permille) : "";
}

std::string statuses_text(const RoundRow& row) {
  std::string text;
  for (const auto& [status, count] : row.statuses) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + status;
  }
  return text;
}

/// How many of a round's candidates ended so.
int count_of(const RoundRow& row, Status status) {
  for (const auto& [name, count] : row.statuses) {
    if (name == to_string(status)) return count;
  }
  return 0;
}

/// Adds a candidate to its round's row.
void count(RoundRow& row, const ReplayedCandidate& candidate, std::map<std::string, int>& statuses,
           std::int64_t& best_cost, bool gpus_differ) {
  ++row.candidates;
  ++statuses[to_string(candidate.outcome.status)];
  if (row.idea.empty()) row.idea = candidate.idea.title;
  if (!candidate.outcome.passed()) return;
  const std::int64_t cost = candidate.outcome.cost(gpus_differ);
  if (row.best_ns != 0 && cost >= best_cost) return;
  best_cost = cost;
  row.best = candidate.id;
  row.best_ns = *candidate.outcome.median_ns;
  row.permille_of_reference = candidate.outcome.permille_of_reference();
  row.idea = candidate.idea.title;
}

std::vector<std::pair<std::string, int>> ordered(const std::map<std::string, int>& statuses) {
  std::vector<std::pair<std::string, int>> result(statuses.begin(), statuses.end());
  std::stable_partition(result.begin(), result.end(),
                        [](const auto& entry) { return entry.first == "passed"; });
  return result;
}

json::object to_json(const RoundRow& row, const Header& header, bool remeasured) {
  json::object statuses;
  for (const auto& [status, number] : row.statuses) statuses[status] = number;
  json::object result{{"round", row.round},
                      {"idea", row.idea},
                      {"best", row.best},
                      {"best_ns", row.best_ns},
                      {"permille_of_reference", row.permille_of_reference},
                      {"best_so_far_ns", row.best_so_far_ns},
                      {"candidates", row.candidates},
                      {"statuses", std::move(statuses)}};
  if (const PublishedRound* published = published_round(header, row.round)) {
    result["published_ns"] = published->time_ns;
    result["published_percent"] = published->percent;
    result["published_permille_by_times"] = published_permille(header, *published);
  }
  if (remeasured) result["today_best_ns"] = row.today_best_ns;
  return result;
}

json::object to_json(const Outcome& outcome) {
  json::object result{{"status", to_string(outcome.status)}, {"message", outcome.message}};
  if (outcome.passed()) {
    result["median_ns"] = *outcome.median_ns;
    result["reference"] = outcome.reference;
    result["reference_ns"] = outcome.reference_ns;
    result["permille_of_reference"] = outcome.permille_of_reference();
    result["badges"] = to_json(outcome.badges);
  }
  return result;
}

json::object to_json(const SearchMetrics& metrics) {
  json::object pass, speedup;
  for (const auto& [k, value] : metrics.pass_at) pass[std::to_string(k)] = value;
  for (const auto& [k, value] : metrics.speedup_at) speedup[std::to_string(k)] = value;
  return {{"candidates", metrics.candidates},
          {"correct", metrics.correct},
          {"best", metrics.best},
          {"best_round", metrics.best_round},
          {"best_ns", metrics.best_ns},
          {"best_permille_of_reference", metrics.best_permille},
          {"pass_at_k", std::move(pass)},
          {"speedup_at_k", std::move(speedup)},
          {"prompt_tokens", metrics.prompt_tokens},
          {"completion_tokens", metrics.completion_tokens}};
}

}  // namespace

const PublishedRound* published_round(const Header& header, int round) {
  if (!header.published) return nullptr;
  for (const PublishedRound& one : header.published->rounds) {
    if (one.round == round) return &one;
  }
  return nullptr;
}

std::int64_t published_permille(const Header& header, const PublishedRound& round) {
  if (round.time_ns <= 0) return 0;
  return (2000 * header.published->reference_ns + round.time_ns) / (2 * round.time_ns);
}

std::string replay_caption(const ReplayedSearch& search) {
  std::string text = search.header.name + ": " + search.header.problem + " for " +
                     search.header.device.name + ", " + std::to_string(search.events) +
                     " events, ended by " +
                     (search.stop_reason.empty() ? "nothing yet" : search.stop_reason) + "\n";
  if (!search.header.replies.empty()) text += "Replies: " + search.header.replies + "\n";
  if (search.header.settings.mixed_gpus) {
    text += "GPUs of different kinds: the best takes the smallest share of its reference's time\n";
  }
  return text;
}

std::vector<RoundRow> round_rows(const ReplayedSearch& search, const Remeasurement* today) {
  std::vector<RoundRow> rows;
  std::map<std::string, int> statuses;
  const bool gpus_differ = search.header.settings.mixed_gpus;
  std::int64_t best = 0;
  std::int64_t least_cost = 0;
  std::size_t next = 0;
  for (const ReplayedRound& round : search.rounds) {
    RoundRow row;
    row.round = round.round;
    statuses.clear();
    std::int64_t cost = 0;
    for (; next < search.candidates.size() && search.candidates[next].round <= round.round;
         ++next) {
      count(row, search.candidates[next], statuses, cost, gpus_differ);
      const std::optional<Outcome> now = today ? today->today[next] : std::nullopt;
      if (now && now->passed() && (row.today_best_ns == 0 || *now->median_ns < row.today_best_ns)) {
        row.today_best_ns = *now->median_ns;
      }
    }
    if (row.best_ns > 0 && (best == 0 || cost < least_cost)) {
      best = row.best_ns;
      least_cost = cost;
    }
    row.best_so_far_ns = best;
    row.statuses = ordered(statuses);
    rows.push_back(std::move(row));
  }
  return rows;
}

SearchMetrics search_metrics(const ReplayedSearch& search) {
  SearchMetrics metrics;
  std::vector<double> speedups;
  std::int64_t least_cost = 0;
  for (const ReplayedCandidate& candidate : search.candidates) {
    if (is_seed(candidate)) continue;
    ++metrics.candidates;
    speedups.push_back(static_cast<double>(candidate.outcome.permille_of_reference()) / 1000.0);
    if (!candidate.outcome.passed()) continue;
    ++metrics.correct;
    const std::int64_t cost = candidate.outcome.cost(search.header.settings.mixed_gpus);
    if (metrics.best_ns != 0 && cost >= least_cost) continue;
    least_cost = cost;
    metrics.best = candidate.id;
    metrics.best_round = candidate.round;
    metrics.best_ns = *candidate.outcome.median_ns;
    metrics.best_permille = candidate.outcome.permille_of_reference();
  }
  for (std::int64_t k = 1; k <= metrics.candidates; k *= 2) {
    metrics.pass_at.emplace_back(k, pass_at_k(metrics.candidates, metrics.correct, k));
    metrics.speedup_at.emplace_back(k, speedup_at_k(speedups, k));
  }
  metrics.prompt_tokens = search.prompt_tokens;
  metrics.completion_tokens = search.completion_tokens;
  return metrics;
}

Table round_table(const ReplayedSearch& search, const Remeasurement* today) {
  const bool published = search.header.published.has_value();
  Table table;
  table.columns = {{.heading = "round", .right_aligned = true, .readers = Readers::people},
                   {.heading = "idea", .wraps = true},
                   {.heading = "best ms", .right_aligned = true, .csv = "best_ms"},
                   {.heading = "% of reference",
                    .right_aligned = true,
                    .short_heading = "% of ref.",
                    .csv = "percent_of_reference"},
                   {.heading = "best so far",
                    .right_aligned = true,
                    .rank = 1,
                    .short_heading = "so far",
                    .csv = "best_so_far_ms"}};
  if (today) {
    table.columns.push_back({.heading = "today ms", .right_aligned = true, .csv = "today_ms"});
  }
  if (published) {
    table.columns.push_back({.heading = "published ms",
                             .right_aligned = true,
                             .short_heading = "publ. ms",
                             .csv = "published_ms"});
    table.columns.push_back({.heading = "published %",
                             .right_aligned = true,
                             .short_heading = "publ. %",
                             .csv = "published_percent"});
    table.columns.push_back({.heading = "published ms give",
                             .right_aligned = true,
                             .rank = 2,
                             .csv = "percent_of_published_ms"});
  }
  table.columns.push_back({.heading = "candidates", .wraps = true, .readers = Readers::people});
  table.columns.push_back({.heading = "round", .readers = Readers::programs});
  table.columns.push_back({.heading = "candidates", .readers = Readers::programs});
  table.columns.push_back({.heading = "passed", .readers = Readers::programs});
  for (const RoundRow& row : round_rows(search, today)) {
    std::vector<std::string> cells{
        row.round < search.header.settings.first_round ? "seeds" : std::to_string(row.round),
        row.idea, time_text(row.best_ns), percent_or_blank(row.permille_of_reference),
        time_text(row.best_so_far_ns)};
    if (today) cells.push_back(time_text(row.today_best_ns));
    if (published) {
      const PublishedRound* there = published_round(search.header, row.round);
      cells.push_back(there ? time_text(there->time_ns) : "");
      cells.push_back(there ? there->percent + "%" : "");
      cells.push_back(there ? percent_of_permille(published_permille(search.header, *there)) : "");
    }
    cells.push_back(statuses_text(row));
    cells.push_back(std::to_string(row.round));
    cells.push_back(std::to_string(row.candidates));
    cells.push_back(std::to_string(count_of(row, Status::passed)));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table remeasured_table(const ReplayedSearch& search, const Remeasurement& today) {
  Table table;
  table.columns = {
      {.heading = "candidate"},
      {.heading = "idea", .wraps = true},
      {.heading = "recorded", .good = to_string(Status::passed), .csv = "recorded_status"},
      {.heading = "ms", .right_aligned = true, .csv = "recorded_ms"},
      {.heading = "%", .right_aligned = true, .rank = 1, .csv = "recorded_percent_of_reference"},
      {.heading = "today", .good = to_string(Status::passed), .csv = "today_status"},
      {.heading = "today ms", .right_aligned = true, .csv = "today_ms"},
      {.heading = "today %", .right_aligned = true, .rank = 1, .csv = "today_percent_of_reference"},
      {.heading = "today ÷ recorded",
       .right_aligned = true,
       .short_heading = "ratio",
       .csv = "today_over_recorded"}};
  for (std::size_t i = 0; i < search.candidates.size(); ++i) {
    const ReplayedCandidate& candidate = search.candidates[i];
    const Outcome& then = candidate.outcome;
    const std::optional<Outcome>& now = today.today[i];
    const bool both = then.passed() && now && now->passed();
    table.rows.push_back(
        {candidate.id, candidate.idea.title, to_string(then.status),
         then.passed() ? time_text(*then.median_ns) : "",
         percent_or_blank(then.permille_of_reference()),
         now ? to_string(now->status) : "no candidate",
         now && now->passed() ? time_text(*now->median_ns) : "",
         now ? percent_or_blank(now->permille_of_reference()) : "",
         both ? decimal(static_cast<double>(*now->median_ns) / static_cast<double>(*then.median_ns))
              : ""});
  }
  return table;
}

std::string metrics_text(const ReplayedSearch& search) {
  const SearchMetrics metrics = search_metrics(search);
  std::string text = std::to_string(metrics.correct) + " of " + std::to_string(metrics.candidates) +
                     " candidates correct";
  if (!metrics.best.empty()) {
    text += "; best " + milliseconds(metrics.best_ns) + " ms (" + metrics.best +
            ", first found in round " + std::to_string(metrics.best_round) + ")";
  }
  text += "\n";
  const auto list = [&](const char* name, const auto& values) {
    text += name;
    for (const auto& [k, value] : values) {
      text += " k=" + std::to_string(k) + ": " + decimal(value);
    }
    text += "\n";
  };
  if (!metrics.pass_at.empty()) {
    list("pass@k", metrics.pass_at);
    list("speedup@k", metrics.speedup_at);
  }
  return text + "tokens: " + std::to_string(metrics.prompt_tokens) + " in prompts, " +
         std::to_string(metrics.completion_tokens) + " in replies\n";
}

std::string published_run_caption(const ReplayedSearch& search) {
  std::map<std::string, int> devices;
  std::string reference;
  for (const ReplayedCandidate& candidate : search.candidates) {
    if (!candidate.outcome.passed()) continue;
    ++devices[candidate.device];
    reference = candidate.outcome.reference;
  }
  std::vector<std::string> names;
  for (const auto& [name, number] : devices) names.push_back(name);
  return "ms and % of " + (reference.empty() ? "reference" : reference) + ": recorded on " +
         joined_or_none(names) + ". Published: " + search.header.published->source +
         "; reference " + milliseconds(search.header.published->reference_ns) +
         " ms, and \"published ms give\" is that time divided by the round's. " +
         search.header.notes;
}

std::string changed_choices_text(const Remeasurement& today) {
  if (today.changed.empty()) return "Today's times choose the same survivors in every round.\n";
  std::string text;
  for (const ChangedChoice& choice : today.changed) {
    text += "Round " + std::to_string(choice.round) + ": recorded survivors " +
            joined_or_none(choice.recorded) + "; today's times choose " +
            joined_or_none(choice.today) + ".\n";
  }
  return text;
}

std::string replay_markdown(const ReplayedSearch& search, const Remeasurement* today) {
  std::string text = "# Replay of " + markdown_text(search.header.name) + "\n\n" +
                     markdown_lines(replay_caption(search)) + "\n" +
                     to_markdown(round_table(search, today)) + "\n" +
                     markdown_lines(metrics_text(search));
  if (today) {
    text += "\n## Measured again\n\n" + to_markdown(remeasured_table(search, *today)) + "\n" +
            markdown_lines(changed_choices_text(*today));
  }
  return text;
}

json::object replay_json(const ReplayedSearch& search, const Remeasurement* today) {
  json::array rounds;
  for (const RoundRow& row : round_rows(search, today)) {
    rounds.push_back(to_json(row, search.header, today != nullptr));
  }
  json::array candidates;
  for (std::size_t i = 0; i < search.candidates.size(); ++i) {
    const ReplayedCandidate& candidate = search.candidates[i];
    json::object entry{{"id", candidate.id},           {"round", candidate.round},
                       {"idea", candidate.idea.title}, {"model", candidate.model},
                       {"sha256", candidate.sha256},   {"recorded", to_json(candidate.outcome)}};
    if (today && today->today[i]) entry["today"] = to_json(*today->today[i]);
    candidates.push_back(std::move(entry));
  }
  json::object result{{"schema", 1},
                      {"name", search.header.name},
                      {"problem", search.header.problem},
                      {"device", search.header.device.name},
                      {"events", search.events},
                      {"stop", search.stop_reason},
                      {"rounds", std::move(rounds)},
                      {"metrics", to_json(search_metrics(search))},
                      {"candidates", std::move(candidates)}};
  if (!search.stop_note.empty()) result["stop_note"] = search.stop_note;
  if (today) {
    json::array changed;
    for (const ChangedChoice& choice : today->changed) {
      changed.push_back(json::object{{"round", choice.round},
                                     {"recorded", json::value_from(choice.recorded)},
                                     {"today", json::value_from(choice.today)}});
    }
    result["changed_choices"] = std::move(changed);
  }
  return result;
}

}  // namespace rekernel

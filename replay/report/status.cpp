#include "replay/report/status.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/compile/compiler_message.h"
#include "replay/model/endpoint.h"
#include "replay/report/replay_report.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/inspection.h"
#include "replay/trajectory/pending_journal.h"
#include "replay/trajectory/trajectory.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// A row for every model, in the order of the settings.
struct ModelRow {
  const ModelSettings* model = nullptr;
  ModelUse use;
  std::optional<double> cost;
};

std::vector<ModelRow> model_rows(const SearchStatus& status) {
  std::vector<ModelRow> rows;
  for (const ModelSettings& model : status.models) {
    const auto same = [&](const ModelRow& row) { return row.model->name == model.name; };
    if (std::any_of(rows.begin(), rows.end(), same)) continue;
    const auto found = status.search.models.find(model.name);
    const ModelUse use = found == status.search.models.end() ? ModelUse{} : found->second;
    rows.push_back({&model, use, cost_usd(model, use.prompt_tokens, use.completion_tokens)});
  }
  return rows;
}

std::map<std::string, int> count_statuses(const ReplayedSearch& search) {
  std::map<std::string, int> counts;
  for (const ReplayedCandidate& candidate : search.candidates) {
    ++counts[to_string(candidate.outcome.status)];
  }
  return counts;
}

const ReplayedCandidate* best_of(const ReplayedSearch& search) {
  const bool gpus_differ = search.header.settings.mixed_gpus;
  const ReplayedCandidate* best = nullptr;
  for (const ReplayedCandidate& candidate : search.candidates) {
    if (!candidate.outcome.passed()) continue;
    const auto cost = [&](const ReplayedCandidate& one) { return one.outcome.cost(gpus_differ); };
    if (!best || cost(candidate) < cost(*best)) best = &candidate;
  }
  return best;
}

/// The last round that anything is known of; the one before the first where nothing is.
int round_of(const SearchStatus& status) {
  int round = status.search.header.settings.first_round - 1;
  if (!status.search.candidates.empty()) {
    round = std::max(round, status.search.candidates.back().round);
  }
  const auto take_round_of = [&](const std::string& id) {
    if (id.starts_with('r')) round = std::max(round, std::atoi(id.c_str() + 1));
  };
  if (!status.search.unusable.empty()) take_round_of(status.search.unusable.back().id);
  if (!status.awaited_replies.empty()) take_round_of(status.awaited_replies.front());
  if (!status.awaited_evaluations.empty()) take_round_of(status.awaited_evaluations.front());
  return round;
}

std::string candidates_text(const SearchStatus& status) {
  std::string text = std::to_string(status.search.candidates.size()) + " candidates evaluated";
  const char* separator = ": ";
  for (const auto& [name, count] : count_statuses(status.search)) {
    text += separator + std::to_string(count) + " " + name;
    separator = ", ";
  }
  return text;
}

/// A heading and the last `most` lines under it.
std::string section(const std::string& heading, const std::vector<std::string>& lines,
                    std::size_t most) {
  if (lines.empty()) return "";
  std::string text = "\n" + heading;
  const std::size_t first = lines.size() > most ? lines.size() - most : 0;
  if (first > 0)
    text += " (the last " + std::to_string(most) + " of " + std::to_string(lines.size()) + ")";
  text += ":\n";
  for (std::size_t i = first; i < lines.size(); ++i) {
    text += wrapped("  " + lines[i], page_columns, 4) + "\n";
  }
  return text;
}

std::string message_line(const std::string& text) { return headline(text, 300); }

std::vector<std::string> failure_lines(const ReplayedSearch& search) {
  std::vector<std::string> lines;
  for (const ReplayedCandidate& candidate : search.candidates) {
    if (candidate.outcome.passed()) continue;
    lines.push_back(candidate.id + ": " + std::string(to_string(candidate.outcome.status)) + ": " +
                    message_line(candidate.outcome.message));
  }
  return lines;
}

std::vector<std::string> waiting_lines(const SearchStatus& status, const fs::path& exchange) {
  std::vector<std::string> lines;
  for (const std::string& id : status.awaited_replies) {
    const fs::path file = exchange / (id + ".reply.md");
    std::error_code ignored;
    const bool there = !exchange.empty() && fs::exists(file, ignored);
    lines.push_back("the reply to " + id +
                    (exchange.empty() ? "" : ": " + file.string() + (there ? " (is there)" : "")));
  }
  for (const std::string& id : status.awaited_evaluations) {
    lines.push_back("the evaluation of " + id);
  }
  for (const std::string& id : status.awaited_profiles) {
    lines.push_back("a profile of " + id);
  }
  return lines;
}

Table model_table(const std::vector<ModelRow>& rows) {
  Table table;
  table.columns = {{"model"},
                   {"replies", true},
                   {"unusable", true},
                   {"prompt tokens", true},
                   {"reply tokens", true},
                   {"US dollars", true}};
  double sum = 0;
  bool known = true;
  ModelUse all;
  for (const ModelRow& row : rows) {
    table.rows.push_back({one_line(row.model->name, 40), std::to_string(row.use.replies),
                          std::to_string(row.use.unusable), std::to_string(row.use.prompt_tokens),
                          std::to_string(row.use.completion_tokens),
                          row.cost ? printed("%.2f", *row.cost) : "price unknown"});
    known = known && row.cost;
    sum += row.cost.value_or(0);
    all.replies += row.use.replies;
    all.unusable += row.use.unusable;
    all.prompt_tokens += row.use.prompt_tokens;
    all.completion_tokens += row.use.completion_tokens;
  }
  if (rows.size() > 1) {
    table.rows.push_back({"all", std::to_string(all.replies), std::to_string(all.unusable),
                          std::to_string(all.prompt_tokens), std::to_string(all.completion_tokens),
                          known ? printed("%.2f", sum) : "price unknown"});
  }
  return table;
}

}  // namespace

std::string state_text(const SearchStatus& status) {
  const std::string& note = status.search.stop_note;
  if (!note.empty()) return "ended early, " + note + "; --resume repeats the round";
  if (!status.search.stop_reason.empty()) return "over (" + status.search.stop_reason + ")";
  const auto counted = [](std::size_t count, const std::string& noun, const char* plural) {
    return std::to_string(count) + " " + (count == 1 ? noun : plural);
  };
  const std::string verb = status.running ? "runs, " : "";
  if (!status.awaited_replies.empty()) {
    return verb + "waits for " + counted(status.awaited_replies.size(), "reply", "replies");
  }
  if (!status.awaited_evaluations.empty()) {
    return verb + "waits for the evaluation of " +
           counted(status.awaited_evaluations.size(), "candidate", "candidates");
  }
  if (!status.awaited_profiles.empty()) {
    return verb + "waits for a profile of " + status.awaited_profiles.front();
  }
  return status.running ? "runs" : "was interrupted; --resume goes on";
}

Result<SearchStatus> search_status(const fs::path& trajectory) {
  SearchStatus status;
  status.running = is_being_written(trajectory);
  Replay replay = replay_exactly(trajectory, KeepCandidates::no, Unfinished::accepted);
  if (replay.interruption) return Error{replay.interruption->message};
  status.search = std::move(replay.search);
  Result<PendingJournal> journal = PendingJournal::open(trajectory);
  if (!journal) return journal.error();
  const auto keep_missing = [&](const char* event, std::vector<std::string>& ids) {
    std::erase_if(ids, [&](const std::string& id) {
      if (!journal->find(event, id)) return false;
      status.arrived.push_back(id);
      return true;
    });
  };
  status.awaited_replies = std::move(replay.awaited_replies);
  status.awaited_evaluations = std::move(replay.awaited_evaluations);
  status.awaited_profiles = std::move(replay.awaited_profiles);
  keep_missing("response", status.awaited_replies);
  keep_missing("evaluation", status.awaited_evaluations);

  auto models = last_endpoints(trajectory, status.search.header.settings.models);
  if (!models) return models.error();
  status.models = std::move(*models);
  return status;
}

std::string status_text(const SearchStatus& status, const fs::path& exchange, std::size_t most) {
  const Header& header = status.search.header;
  std::string text = header.name + ": " + header.problem + " for " + header.device.name + ", " +
                     std::to_string(status.search.events) + " events\n";
  text += wrapped("state: " + state_text(status), page_columns, 2) + "\n";
  text += wrapped("round " + std::to_string(round_of(status)) + ", planned up to " +
                      std::to_string(header.settings.last_round()) + "; " + candidates_text(status),
                  page_columns, 2) +
          "\n";
  if (const ReplayedCandidate* best = best_of(status.search)) {
    text += "best: " + best->id + ", " + milliseconds(*best->outcome.median_ns) + " ms";
    if (best->outcome.permille_of_reference() > 0) {
      text += ", " + percent_of_permille(best->outcome.permille_of_reference()) + " of " +
              best->outcome.reference;
    }
    text += "\n";
  }
  text += section("waits for", waiting_lines(status, exchange), 4096);
  text += section("arrived before its turn", status.arrived, most);
  std::vector<std::string> unusable;
  for (const UnusableReply& reply : status.search.unusable) {
    unusable.push_back(reply.id + " of " + one_line(reply.model, 64) + ": " +
                       message_line(reply.reason));
  }
  text += section("unusable replies, asked for again", unusable, most);
  text += section("failed candidates", failure_lines(status.search), most);
  return text + "\n" + to_text(model_table(model_rows(status)));
}

json::object status_json(const SearchStatus& status) {
  json::object statuses;
  for (const auto& [name, count] : count_statuses(status.search)) statuses[name] = count;
  json::array failed;
  for (const ReplayedCandidate& candidate : status.search.candidates) {
    if (candidate.outcome.passed()) continue;
    failed.push_back(json::object{{"id", candidate.id},
                                  {"status", to_string(candidate.outcome.status)},
                                  {"message", candidate.outcome.message}});
  }
  json::array unusable;
  for (const UnusableReply& reply : status.search.unusable) {
    unusable.push_back(
        json::object{{"id", reply.id}, {"model", reply.model}, {"reason", reply.reason}});
  }
  json::array models;
  for (const ModelRow& row : model_rows(status)) {
    json::object entry{{"name", row.model->name},
                       {"replies", row.use.replies},
                       {"unusable", row.use.unusable},
                       {"prompt_tokens", row.use.prompt_tokens},
                       {"completion_tokens", row.use.completion_tokens}};
    if (row.cost) entry["cost_usd"] = *row.cost;
    models.push_back(std::move(entry));
  }
  json::object result{{"schema", 1},
                      {"name", status.search.header.name},
                      {"problem", status.search.header.problem},
                      {"events", status.search.events},
                      {"stop", status.search.stop_reason},
                      {"stop_note", status.search.stop_note},
                      {"running", status.running},
                      {"round", round_of(status)},
                      {"last_round", status.search.header.settings.last_round()},
                      {"statuses", std::move(statuses)},
                      {"awaited_replies", json::value_from(status.awaited_replies)},
                      {"awaited_evaluations", json::value_from(status.awaited_evaluations)},
                      {"awaited_profiles", json::value_from(status.awaited_profiles)},
                      {"arrived", json::value_from(status.arrived)},
                      {"unusable", std::move(unusable)},
                      {"failed", std::move(failed)},
                      {"models", std::move(models)}};
  if (const ReplayedCandidate* best = best_of(status.search)) {
    result["best"] = json::object{{"id", best->id},
                                  {"median_ns", *best->outcome.median_ns},
                                  {"permille_of_reference", best->outcome.permille_of_reference()}};
  }
  return result;
}

}  // namespace rekernel

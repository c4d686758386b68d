#include "harness/dataset/search_rows.h"

#include <algorithm>
#include <boost/json.hpp>
#include <deque>
#include <map>
#include <set>

#include "harness/base/text.h"
#include "harness/dataset/comparisons.h"
#include "harness/dataset/differences.h"
#include "harness/dataset/evaluation_columns.h"
#include "harness/dataset/repairs.h"
#include "harness/dataset/round_memory.h"
#include "replay/playback/replayer.h"
#include "replay/report/walk.h"
#include "replay/trajectory/event.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

/// What a reply's row tells of the candidates that came of it.
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

/// Differences of code and plan to a parent, by candidate.
using Changes = std::map<std::string, std::pair<std::string, std::string>>;

class SearchRows {
 public:
  SearchRows(const Header& header, const std::string& license, Differences differences,
             NearDuplicates& near_duplicates, RowStream& rows)
      : header_(header),
        license_(license),
        differences_(differences),
        near_duplicates_(near_duplicates),
        rows_(rows),
        split_(split_of(header.problem)) {}

  SearchObserver observer() {
    SearchObserver observer;
    observer.request = [this](const RequestReport& report) { round_.note(report); };
    observer.reply = [this](const ReplyReport& report) { round_.note(report); };
    observer.candidate = [this](const CandidateReport& report) { note_candidate(report); };
    observer.selection = [this](const SelectionReport& report) { end_round(report.selection); };
    return observer;
  }

  /// What came after the last selection: a search may end before its round does.
  void finish() { end_round({}); }

  /// Why a row could not be made: GNU diff is missing, say.
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string name_of(const std::string& id) const { return header_.name + "/" + id; }

  json::object begin_search_row(const std::string& name, const std::vector<std::string>& content,
                                int round) const {
    json::object row = begin_row(name, header_.problem, content);
    row["search"] = header_.name;
    row["round"] = round;
    row["license"] = license_;
    return row;
  }

  void note_candidate(const CandidateReport& report) {
    KeptCandidate kept;
    kept.id = report.id;
    kept.round = report.round;
    kept.idea = report.idea;
    kept.model = report.model;
    kept.parents = report.parents;
    kept.outcome = *report.outcome;
    kept.record = *report.record;
    kept.record.erase("chain");
    std::string code;
    if (report.candidate) {
      kept.candidate = *report.candidate;
      code = report.candidate->program.source;
      kept.sketch = min_hash(code);
      Result<Evaluation> evaluation = evaluation_from_record(kept.record, name_of(report.id));
      if (!evaluation && !error_) error_ = evaluation.error();
      if (evaluation) kept.evaluation = std::move(*evaluation);
    } else {
      kept.evaluation.status = report.outcome->status;
      kept.evaluation.message = report.outcome->message;
    }
    kept.row_id = row_id(name_of(report.id), {canonical_json(kept.record), code});
    round_.candidates.push_back(std::move(kept));
  }

  void end_round(const Selection& selection) {
    const std::set<std::string> survivors(selection.survivors.begin(), selection.survivors.end());
    const std::set<std::string> bank(selection.bank.begin(), selection.bank.end());
    const Changes changes = make_differences();
    for (const KeptCandidate& candidate : round_.candidates) {
      put_candidate(candidate, survivors.contains(candidate.id), bank.contains(candidate.id),
                    changes);
    }
    put_messages(survivors);
    put_preferences();
    put_repairs();
    round_ = {};
  }

  // ── Candidates ───────────────────────────────────────────────────────────────────────────────

  void put_candidate(const KeptCandidate& kept, bool survived, bool banked,
                     const Changes& changes) {
    json::object row = begin_search_row(name_of(kept.id), {}, kept.round);
    row["id"] = kept.row_id;
    row["origin"] = "search";
    row["candidate"] = kept.id;
    row["model"] = kept.model;
    row["replies"] = header_.replies;
    row["idea_title"] = kept.idea.title;
    row["idea_asked"] = kept.idea.text;
    row["parents"] = json::value_from(kept.parents);
    row["survived"] = survived;
    row["banked"] = banked;
    add_problem_columns(row, header_.problem);
    add_evaluation_columns(row, kept.evaluation);
    add_texts_of_record(row, kept.record);
    if (const KeptRequest* request = round_.find_request(kept.id)) add_tokens(row, *request);
    if (kept.candidate) {
      add_candidate_columns(row, *kept.candidate);
      if (const auto change = changes.find(kept.id); change != changes.end()) {
        row["parent"] = name_of(round_.parents.front().id);
        row["difference"] = change->second.first;
        row["plan_difference"] = change->second.second;
      }
      if (const auto near = near_duplicates_.add(kept.row_id, kept.sketch)) {
        row["near_duplicate_of"] = near->of;
        row["near_duplicate_similarity"] = near->similarity;
      }
    }
    rows_.put(config::candidates, split_, row);
  }

  static void add_texts_of_record(json::object& row, const json::object& record) {
    for (const char* key : {"device", "toolchain", "measured"}) {
      if (const json::value* text = record.if_contains(key); text && text->is_string()) {
        row[key] = *text;
      }
    }
  }

  static void add_tokens(json::object& row, const KeptRequest& request) {
    const KeptReply* reply = request.taken();
    if (!reply) return;
    row["prompt_sha256"] = request.prompt.sha256();
    row["prompt_tokens"] = reply->prompt_tokens;
    row["completion_tokens"] = reply->completion_tokens;
  }

  /// Of the round's candidates, to the first kernel of the search that their prompts showed.
  Changes make_differences() {
    Changes made;
    if (differences_ == Differences::left_out || round_.parents.empty()) return made;
    const ShownParent& parent = round_.parents.front();
    const std::string parents_plan = plan_that_runs(parent.candidate);
    std::vector<const KeptCandidate*> compared;
    std::deque<std::string> plans;
    std::vector<TextPair> pairs;
    for (const KeptCandidate& one : round_.candidates) {
      if (!one.candidate || one.parents.empty()) continue;
      compared.push_back(&one);
      plans.push_back(plan_that_runs(*one.candidate));
      pairs.push_back({{parent.id + "/kernel.cu", parent.candidate.program.source},
                       {one.id + "/kernel.cu", one.candidate->program.source}});
      pairs.push_back(
          {{parent.id + "/kernel.json", parents_plan}, {one.id + "/kernel.json", plans.back()}});
    }
    Result<std::vector<std::string>> texts = unified_differences(pairs);
    if (!texts) {
      if (!error_) error_ = texts.error();
      return made;
    }
    for (std::size_t i = 0; i < compared.size(); ++i) {
      made[compared[i]->id] = {std::move((*texts)[2 * i]), std::move((*texts)[2 * i + 1])};
    }
    return made;
  }

  // ── Messages ─────────────────────────────────────────────────────────────────────────────────

  std::vector<const KeptCandidate*> candidates_of(const KeptRequest& request) const {
    std::vector<const KeptCandidate*> candidates;
    for (const KeptCandidate& candidate : round_.candidates) {
      if (request.kind == ReplyKind::ideas || candidate.id == request.id) {
        candidates.push_back(&candidate);
      }
    }
    return candidates;
  }

  void put_messages(const std::set<std::string>& survivors) {
    std::map<std::string, int> attempts;
    for (std::size_t i = 0; i < round_.requests.size(); ++i) {
      const KeptRequest& request = round_.requests[i];
      // Where a round was repeated, its first requests led to nothing.
      const bool led_on = round_.request_of.at(request.id) == i;
      for (const KeptReply& reply : request.replies) {
        put_message(request, reply, ++attempts[request.id],
                    led_on && reply.unusable.empty() ? &survivors : nullptr);
      }
    }
  }

  void put_message(const KeptRequest& request, const KeptReply& reply, int attempt,
                   const std::set<std::string>* survivors) {
    const std::string name =
        name_of(request.id) + (attempt > 1 ? "#" + std::to_string(attempt) : "");
    const std::string prompt_sha256 = request.prompt.sha256();
    json::object row = begin_search_row(name, {prompt_sha256, reply.text}, request.round);
    row["request"] = request.id;
    row["kind"] = request.kind == ReplyKind::ideas ? "ideas" : "kernel";
    row["attempt"] = attempt;
    row["model"] = request.model;
    row["replies"] = header_.replies;
    row["idea_title"] = request.idea_title;
    row["messages"] =
        json::array{chat_turn("user", request.prompt.text()), chat_turn("assistant", reply.text)};
    row["prompt_sha256"] = prompt_sha256;
    row["parents"] = json::value_from(request.parents);
    row["prompt_tokens"] = reply.prompt_tokens;
    row["completion_tokens"] = reply.completion_tokens;
    row["tokens_counted"] = reply.counted;
    row["truncated"] = reply.truncated;
    row["failure"] = reply.failure;
    row["unusable"] = reply.unusable;
    if (survivors) add_what_followed(row, candidates_of(request), *survivors);
    rows_.put(config::messages, split_, row);
  }

  // ── Preferences ──────────────────────────────────────────────────────────────────────────────

  void put_preferences() {
    std::vector<std::string> order;
    std::map<std::string, std::vector<const KeptCandidate*>> by_idea;
    for (const KeptCandidate& candidate : round_.candidates) {
      if (!round_.find_request(candidate.id)) continue;  // seeds have no prompt
      std::vector<const KeptCandidate*>& of_idea = by_idea[candidate.idea_id()];
      if (of_idea.empty()) order.push_back(candidate.idea_id());
      of_idea.push_back(&candidate);
    }
    std::vector<const KeptCandidate*> best_of_ideas;
    for (const std::string& idea : order) {
      std::vector<const KeptCandidate*>& of_idea = by_idea[idea];
      for (const Preference& one : preferences_among(of_idea)) put_preference("idea", one);
      rank(of_idea);
      best_of_ideas.push_back(of_idea.front());
    }
    for (const Preference& one : preferences_among(best_of_ideas)) put_preference("parents", one);
  }

  void put_preference(const char* same, const Preference& preference) {
    const KeptCandidate& better = *preference.better;
    const KeptCandidate& worse = *preference.worse;
    const KeptRequest& request = *round_.find_request(better.id);
    const KeptRequest& other = *round_.find_request(worse.id);
    if (!request.taken() || !other.taken()) return;
    json::object row = begin_search_row(name_of(better.id) + ">" + worse.id,
                                        {better.row_id, worse.row_id}, better.round);
    row["same"] = same;
    row["prompt"] = json::array{chat_turn("user", request.prompt.text())};
    row["chosen"] = json::array{chat_turn("assistant", request.taken()->text)};
    row["rejected"] = json::array{chat_turn("assistant", other.taken()->text)};
    row["chosen_id"] = better.row_id;
    row["rejected_id"] = worse.row_id;
    row["chosen_status"] = to_string(better.outcome.status);
    row["rejected_status"] = to_string(worse.outcome.status);
    row["rejected_message"] = worse.outcome.message;
    row["device"] = better.device();
    row["by"] = preference.by.by_verdict ? "verdict" : "time";
    row["chosen_ns"] = *better.outcome.median_ns;
    if (!preference.by.by_verdict) {
      row["rejected_ns"] = *worse.outcome.median_ns;
      row["speedup"] = preference.by.speedup;
      row["speedup_low"] = preference.by.speedup_low;
      row["speedup_high"] = preference.by.speedup_high;
      row["beyond_noise"] = preference.by.speedup_low - 1;
    }
    rows_.put(config::preferences, split_, row);
  }

  // ── Repairs ──────────────────────────────────────────────────────────────────────────────────

  void put_repairs() {
    for (const Repair& repair : repairs_.in_round(round_)) {
      json::object row = begin_search_row(name_of(repair.failed_name) + "→" + repair.mended_name,
                                          repair.content, repair.round);
      for (auto& [key, value] : repair.columns) row[key] = value;
      rows_.put(config::repairs, split_, row);
    }
  }

  const Header& header_;
  const std::string& license_;
  const Differences differences_;
  NearDuplicates& near_duplicates_;
  RowStream& rows_;
  const Split split_;
  RoundMemory round_;
  Repairs repairs_;
  std::optional<Error> error_;
};

}  // namespace

Result<SearchSummary> put_search_rows(const fs::path& trajectory, const std::string& license,
                                      Differences differences, NearDuplicates& near_duplicates,
                                      RowStream& rows) {
  std::optional<SearchRows> search;
  const Replay replay = replay_observed(trajectory, [&](const Header& header) {
    search.emplace(header, license, differences, near_duplicates, rows);
    return search->observer();
  });
  if (replay.interruption) return Error{replay.interruption->message};
  search->finish();
  if (search->error()) return Error{trajectory.string() + ": " + search->error()->message};
  const Header& header = replay.search.header;
  SearchSummary summary{header.name, header.problem,     header.replies,      header.notes,
                        {},          header.device.name, replay.search.events};
  for (const ModelSettings& model : header.settings.models) summary.models.push_back(model.name);
  return summary;
}

}  // namespace rekernel

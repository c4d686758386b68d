#include "harness/dataset/search_rows.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <set>

#include "harness/base/text.h"
#include "harness/dataset/comparisons.h"
#include "harness/dataset/evaluation_columns.h"
#include "harness/dataset/parent_changes.h"
#include "harness/dataset/repairs.h"
#include "harness/dataset/round_memory.h"
#include "replay/playback/replayer.h"
#include "replay/trajectory/event.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

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
    const ParentChanges changes = changes_to_parent();
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
                     const ParentChanges& changes) {
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
        row["difference"] = change->second.code;
        row["plan_difference"] = change->second.plan;
      }
      if (const auto near = near_duplicates_.add(kept.row_id, kept.sketch)) {
        row["near_duplicate_of"] = near->of;
        row["near_duplicate_similarity"] = near->similarity;
      }
    }
    rows_.put(config::candidates, split_, row);
  }

  ParentChanges changes_to_parent() {
    if (differences_ == Differences::left_out) return {};
    Result<ParentChanges> changes = parent_changes(round_, comparer_);
    if (!changes && !error_) error_ = changes.error();
    return changes ? std::move(*changes) : ParentChanges();
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
    add_preference_columns(row, preference);
    rows_.put(config::preferences, split_, row);
  }

  // ── Repairs ──────────────────────────────────────────────────────────────────────────────────

  void put_repairs() {
    for (const Repair& repair : repairs_.in_round(round_)) {
      json::object row = begin_search_row(name_of(repair.failed_name) + "→" + repair.repaired_name,
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
  TextComparer comparer_;
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

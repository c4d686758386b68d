// The searches' part of the report: every recorded search, replayed exactly, with its candidates'
// code and what each changed, and what was measured of them again.
#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <optional>
#include <set>

#include "harness/base/json.h"
#include "harness/project/unfinished_searches.h"
#include "harness/report/data.h"
#include "harness/terminal/progress.h"
#include "replay/playback/replayer.h"
#include "replay/report/replay_report.h"
#include "replay/report/walk.h"
#include "replay/trajectory/outcome.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

json::object to_json(const ErrorStats& errors) {
  return {{"max_abs", finite_or_null(errors.max_abs)},
          {"rms", finite_or_null(errors.rms)},
          {"truth_rms", finite_or_null(errors.truth_rms)},
          {"tolerance", finite_or_null(errors.worst_tolerance_ratio)},
          {"strict", finite_or_null(errors.worst_strict_ratio)}};
}

/// What only the whole evaluation knows. Nothing of a reply that held no candidate.
void add_evaluation(json::object& entry, const Evaluation& evaluation) {
  if (evaluation.timing) {
    entry["low_ns"] = evaluation.timing->low_ns;
    entry["high_ns"] = evaluation.timing->high_ns;
  }
  entry["ceiling_ns"] = evaluation.ceiling_ns;
  entry["target"] = evaluation.target;
  entry["badge_notes"] = evaluation.badge_notes;
  if (evaluation.errors) entry["errors"] = to_json(*evaluation.errors);
  const ReferenceResult* headline = evaluation.headline();
  if (headline && headline->percent_of_reference) {
    entry["percent"] = {{"value", finite_or_null(headline->percent_of_reference->value)},
                        {"low", finite_or_null(headline->percent_of_reference->low)},
                        {"high", finite_or_null(headline->percent_of_reference->high)}};
  }
  entry["resources"] = to_json(evaluation.resources);
}

class SearchPage {
 public:
  SearchPage(const fs::path& path, RecordComplaints& complaints)
      : path_(path), complaints_(complaints) {}

  /// Nothing where not even the header can be read.
  std::optional<json::object> json() {
    const Replay replay = replay_exactly(path_, KeepCandidates::yes);
    if (replay.interruption) {
      complaints_.unreadable(path_, replay.interruption->message);
      if (replay.search.header.name.empty()) return std::nullopt;
    }
    const ReplayedSearch& search = replay.search;
    json::object page = replay_json(search);
    page["file"] = complaints_.from_root(path_);
    page["whole"] = !replay.interruption;
    page["settings"] = to_json(search.header.settings);
    page["target"] = search.header.device.target;
    page["toolchain"] = json::value_from(search.header.toolchain);
    page["replies"] = search.header.replies;
    page["notes"] = search.header.notes;
    page["first_round"] = search.header.settings.first_round;
    add_published(page, search.header);
    add_rounds(page.at("rounds").as_array(), search);
    json::array& library = page["library"].emplace_array();
    for (const LibraryKernel& kernel : search.header.library) {
      library.push_back({{"name", kernel.name}, {"note", kernel.note}, {"source", kernel.source}});
    }
    add_candidates(page.at("candidates").as_array(), search);
    return page;
  }

 private:
  static void add_published(json::object& page, const Header& header) {
    if (!header.published) return;
    json::array rounds;
    for (const PublishedRound& round : header.published->rounds) {
      rounds.push_back({{"round", round.round},
                        {"time_ns", round.time_ns},
                        {"percent", round.percent},
                        {"permille_by_times", published_permille(header, round)},
                        {"idea", round.idea}});
    }
    page["published"] = {{"source", header.published->source},
                         {"reference_ns", header.published->reference_ns},
                         {"rounds", std::move(rounds)}};
  }

  static void add_rounds(json::array& rounds, const ReplayedSearch& search) {
    std::int64_t prompts = 0, replies = 0;
    for (std::size_t i = 0; i < search.rounds.size(); ++i) {
      const ReplayedRound& round = search.rounds[i];
      json::object& entry = rounds[i].as_object();
      entry["survivors"] = json::value_from(round.selection.survivors);
      entry["bank"] = json::value_from(round.selection.bank);
      entry["prompt_tokens"] = round.prompt_tokens - prompts;
      entry["completion_tokens"] = round.completion_tokens - replies;
      prompts = round.prompt_tokens;
      replies = round.completion_tokens;
    }
  }

  void add_candidates(json::array& entries, const ReplayedSearch& search) {
    for (std::size_t i = 0; i < search.candidates.size(); ++i) {
      const ReplayedCandidate& candidate = search.candidates[i];
      json::object& entry = entries[i].as_object();
      entry["idea_text"] = candidate.idea.text;
      entry["parents"] = json::value_from(candidate.parents);
      entry["device"] = candidate.device;
      entry["registers"] = candidate.outcome.registers;
      entry["spill_bytes"] = candidate.outcome.spill_bytes;
      if (const auto found = search.profiles.find(candidate.id); found != search.profiles.end()) {
        entry["profile"] = prompt_profile(found->second);
      }
      if (!candidate.candidate) continue;
      entry["source"] = candidate.candidate->program.source;
      entry["plan"] = candidate_json(*candidate.candidate);
      const Result<Evaluation> evaluation = evaluation_from_record(candidate.record, candidate.id);
      if (evaluation) {
        add_evaluation(entry, *evaluation);
      } else {
        complaints_.unreadable(path_, evaluation.error().message);
      }
      add_change(entry, search, candidate);
    }
  }

  void add_change(json::object& entry, const ReplayedSearch& search,
                  const ReplayedCandidate& candidate) {
    const Result<std::optional<ChangeOfParent>> change = change_of_parent(search, candidate);
    if (!change) {
      if (!said_that_there_is_no_diff_) complaints_.missing(path_, change.error().message);
      said_that_there_is_no_diff_ = true;
    } else if (*change) {
      entry["change"] = {
          {"parent", (*change)->parent}, {"source", (*change)->source}, {"plan", (*change)->plan}};
    }
  }

  const fs::path& path_;
  RecordComplaints& complaints_;
  bool said_that_there_is_no_diff_ = false;
};

/// One candidate, measured again on one device: the "today" of a report that `replay --measure
/// --output` wrote.
json::object read_today(JsonReader reader) {
  json::object today{{"status", reader.required("status").string()}};
  if (auto median = reader.optional("median_ns")) {
    today["median_ns"] = median->integer(0, std::int64_t{1} << 62);
  }
  if (auto permille = reader.optional("permille_of_reference")) {
    today["permille_of_reference"] = permille->integer(0, std::int64_t{1} << 62);
  }
  return today;
}

/// By candidate and hash: what is no longer the recorded candidate is left out.
Result<json::object> read_measured(const fs::path& path, std::string& search) {
  const Result<json::value> value = read_json_file(path);
  if (!value) return value.error();
  JsonReader reader(path.string(), *value);
  search = reader.required("name").string();
  json::object today;
  for (JsonReader& candidate : reader.required("candidates").array()) {
    const std::string id = candidate.required("id").string();
    const std::string sha256 = candidate.required("sha256").string();
    if (auto one = candidate.optional("today")) today[id + " " + sha256] = read_today(*one);
  }
  if (auto error = reader.error()) return *error;
  return today;
}

/// Every results/*/replay/*`suffix`, sorted.
std::vector<fs::path> replay_records(const fs::path& root, const std::string& suffix) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& device : fs::directory_iterator(root / "results", ignored)) {
    for (const auto& entry : fs::directory_iterator(device.path() / "replay", ignored)) {
      if (entry.path().filename().string().ends_with(suffix)) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

using SearchesByName = std::map<std::string, json::object*>;

json::object* search_named(const SearchesByName& searches, const std::string& name,
                           const fs::path& path, RecordComplaints& complaints) {
  const auto found = searches.find(name);
  if (found != searches.end()) return found->second;
  complaints.missing(path, "it is of the search " + name + ", which cannot be read here");
  return nullptr;
}

void add_measured_again(const SearchesByName& searches, RecordComplaints& complaints) {
  for (const fs::path& path : replay_records(complaints.root(), ".measured.json")) {
    std::string name;
    Result<json::object> today = read_measured(path, name);
    if (!today) {
      complaints.unreadable(path, today.error().message);
      continue;
    }
    json::object* search = search_named(searches, name, path, complaints);
    if (!search) continue;
    const std::string folder = path.parent_path().parent_path().filename().string();
    for (json::value& entry : search->at("candidates").as_array()) {
      json::object& candidate = entry.get_object();
      const json::value* one =
          today->if_contains(std::string(candidate.at("id").as_string()) + " " +
                             std::string(candidate.at("sha256").as_string()));
      if (!one) continue;
      if (!candidate.contains("today")) candidate["today"].emplace_array();
      json::object here = one->get_object();
      here["folder"] = folder;
      candidate.at("today").as_array().push_back(std::move(here));
    }
  }
}

/// What a profiler said: whatever it counted, with the names that it gave.
void add_profiles(const SearchesByName& searches, RecordComplaints& complaints) {
  for (const fs::path& path : replay_records(complaints.root(), ".ncu.json")) {
    const Result<json::value> value = read_json_file(path);
    if (!value) {
      complaints.unreadable(path, value.error().message);
      continue;
    }
    JsonReader reader(path.string(), *value);
    const std::string name = reader.required("name").string();
    json::object profile{{"device", reader.required("device").string()},
                         {"tool", reader.required("tool").string()},
                         {"notes", json::value_from(reader.required("notes").strings())},
                         {"file", complaints.from_root(path)}};
    json::array& rounds = profile["rounds"].emplace_array();
    for (JsonReader& round : reader.required("rounds").array()) {
      json::object metrics;
      for (auto& [metric, figure] : round.required("metrics").entries()) {
        if (figure.raw().is_structured()) figure.expect("a number or a text");
        metrics[metric] = figure.raw();
      }
      rounds.push_back({{"candidate", round.required("candidate").string()},
                        {"kernel", round.required("kernel").string()},
                        {"metrics", std::move(metrics)}});
    }
    if (auto error = reader.error()) {
      complaints.unreadable(path, error->message);
      continue;
    }
    json::object* search = search_named(searches, name, path, complaints);
    if (!search) continue;
    if (!search->contains("profiles")) (*search)["profiles"].emplace_array();
    search->at("profiles").as_array().push_back(std::move(profile));
  }
}

}  // namespace

json::array report_searches(RecordComplaints& complaints) {
  std::vector<std::string> left_out;  // this user's own searches, on the way
  const std::vector<fs::path> paths = finished_trajectories(complaints.root(), left_out);
  json::array searches;
  Progress progress;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    progress.step(i, paths.size(), "replaying recorded searches");
    if (auto page = SearchPage(paths[i], complaints).json()) searches.push_back(std::move(*page));
  }
  SearchesByName by_name;
  for (json::value& search : searches) {
    by_name[std::string(search.at("name").as_string())] = &search.get_object();
  }
  add_measured_again(by_name, complaints);
  add_profiles(by_name, complaints);
  return searches;
}

}  // namespace rekernel

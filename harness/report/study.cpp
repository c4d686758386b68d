#include "harness/report/study.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/markdown.h"
#include "harness/records/table.h"
#include "harness/report/data.h"
#include "replay/playback/replayer.h"
#include "replay/search/study.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

std::vector<fs::path> study_files(const fs::path& root) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root / "trajectories", ignored)) {
    if (fs::is_regular_file(entry.path() / "study.json", ignored)) {
      files.push_back(entry.path() / "study.json");
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// A search that has not begun, or goes on, is not there yet.
void add_search(const fs::path& path, bool profiled, StudyOnRecord& record) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  const Replay replay = replay_exactly(path, KeepCandidates::no, Unfinished::accepted);
  if (replay.interruption) {
    record.unreadable.push_back(replay.interruption->message);
  } else if (!replay.search.stop_reason.empty()) {
    record.searches.push_back(studied(replay.search, profiled));
  }
}

StudyOnRecord on_record(const Study& study, const fs::path& file, const fs::path& root) {
  StudyOnRecord record{
      study.name, file.lexically_relative(root).string(), study.problems.size(), {}, {}};
  for (const std::string& problem : study.problems) {
    add_search(root / "trajectories" / (study.search_name(problem) + ".jsonl"),
               study.is_profiled(problem), record);
  }
  return record;
}

/// "Ten of ten searches are there" is what nobody needs to be told.
std::string how_many(const StudyOnRecord& study) {
  if (study.searches.size() == study.problems) return "";
  return std::to_string(study.searches.size()) + " of its " + std::to_string(study.problems) +
         " searches have come to their end. ";
}

}  // namespace

Result<std::vector<StudyOnRecord>> studies_on_record(const fs::path& root) {
  std::vector<StudyOnRecord> studies;
  for (const fs::path& file : study_files(root)) {
    const Result<Study> study = load_study(file);
    if (!study) return study.error();
    StudyOnRecord record = on_record(*study, file, root);
    if (!record.searches.empty() || !record.unreadable.empty())
      studies.push_back(std::move(record));
  }
  return studies;
}

std::string studies_markdown(const std::vector<StudyOnRecord>& studies) {
  std::string text;
  for (const StudyOnRecord& study : studies) {
    if (study.searches.empty()) continue;
    const std::string page = study.file.substr(0, study.file.rfind('/')) + "/STUDY.md";
    text +=
        "\n![In which round the best kernel was found, beside the published statement]"
        "(results/pictures/study-" +
        study.name + ".svg)\n\n" + to_markdown(study_table(study.searches)) +
        "\nTimes in ms: the seed's, then the best so far after each round. × reference: how "
        "many times as fast as PyTorch eager, or the library, the best is. Round 1 alone, one "
        "line: how many times as long their best takes as the best of all. [What was fixed "
        "before](" +
        page + ").\n\n" + markdown_text(how_many(study) + study_text(study.searches)) + "\n";
  }
  return text.empty() ? "" : text + "\n";
}

json::array report_studies(RecordComplaints& complaints) {
  json::array entries;
  for (const fs::path& file : study_files(complaints.root())) {
    const Result<Study> study = load_study(file);
    if (!study) {
      complaints.unreadable(file, study.error().message);
      continue;
    }
    const StudyOnRecord record = on_record(*study, file, complaints.root());
    for (const std::string& line : record.unreadable) complaints.unreadable(file, line);
    if (record.searches.empty()) continue;
    json::object entry = to_json(record.searches);
    entry["name"] = record.name;
    entry["file"] = record.file;
    entry["problems"] = record.problems;
    entry["rounds"] = record.searches.front().best_so_far.size() - 1;
    entry["text"] = how_many(record) + study_text(record.searches);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace rekernel

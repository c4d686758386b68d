#include "harness/report/leaderboard.h"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <map>

#include "harness/base/json.h"
#include "harness/base/markdown.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/git.h"
#include "harness/project/recorded.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t longest_name = 100;

/// One version of a record: what passed of each problem. Older versions have other keys, so that
/// nothing else is asked of them.
std::map<std::string, std::vector<BestTime>> times_in(const std::string& text) {
  std::map<std::string, std::vector<BestTime>> times;
  const Result<boost::json::value> json = parse_json(text, "an earlier record");
  if (!json) return times;
  JsonReader reader("an earlier record", *json);
  for (JsonReader& row : reader.required("rows").array()) {
    const std::string problem = row.required("problem").string();
    const std::string kernel = row.required("kernel").string();
    const bool passed = row.required("status").string() == "passed";
    const std::int64_t median_ns =
        row.required("median_ns").integer(0, std::numeric_limits<std::int64_t>::max());
    if (!passed || median_ns == 0) continue;
    times[problem].push_back({"", "", kernel, median_ns, row.optional_string("sha256")});
  }
  return reader.error() ? std::map<std::string, std::vector<BestTime>>{} : times;
}

bool is_same_kernel(const BestTime& a, const BestTime& b) {
  return a.sha256 == b.sha256 && (!a.sha256.empty() || a.kernel == b.kernel);
}

/// Goes on by one version. The same kernel measured again is no progress, whatever its time: the
/// machine or the judge changed, and other kernels are held against what it is now.
void take_version(const BestTime& version, std::vector<BestTime> times,
                  std::vector<BestTime>& history) {
  if (times.empty()) return;
  for (const BestTime& one : times) {
    if (!history.empty() && is_same_kernel(one, history.back())) {
      history.back().median_ns = one.median_ns;
    }
  }
  BestTime& best = *std::min_element(
      times.begin(), times.end(),
      [](const BestTime& a, const BestTime& b) { return a.median_ns < b.median_ns; });
  const bool again = std::any_of(history.begin(), history.end(),
                                 [&](const BestTime& one) { return is_same_kernel(one, best); });
  if (again || (!history.empty() && best.median_ns >= history.back().median_ns)) return;
  best.date = version.date;
  best.commit = version.commit;
  history.push_back(best);
}

/// Every version of the file with its date, the oldest first.
std::vector<std::pair<BestTime, std::string>> versions_of(const Git& git, const std::string& path) {
  std::vector<std::pair<BestTime, std::string>> versions;
  const Result<std::string> log =
      git.run({"log", "--first-parent", "--reverse", "--format=%H %cs", "--", path});
  if (!log) return versions;
  for (std::size_t begin = 0; begin < log->size();) {
    const std::size_t end = std::min(log->find('\n', begin), log->size());
    const std::string line = log->substr(begin, end - begin);
    begin = end + 1;
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos) continue;
    const std::string commit = line.substr(0, blank);
    if (auto content = git.content(commit, path)) {
      versions.emplace_back(BestTime{line.substr(blank + 1), commit, "", 0, ""},
                            std::move(*content));
    }
  }
  return versions;
}

std::string history_text(const std::vector<BestTime>& history) {
  std::string text;
  for (const BestTime& one : history) {
    text += (text.empty() ? "Best time: " : ", then ") + milliseconds(one.median_ns) + " ms (" +
            markdown_code(one.kernel, longest_name) + ", " + one.date + ")";
  }
  return text.empty() ? "" : "\n" + text + ".\n";
}

}  // namespace

Staleness staleness_by(const std::vector<Candidate>& candidates) {
  std::map<std::string, std::string> present;
  for (const Candidate& one : candidates) {
    present[one.problem + "/" + one.name] = candidate_sha256(one);
  }
  return [present = std::move(present)](const BenchRow& row) -> std::string {
    const auto found = present.find(row.problem + "/" + row.kernel);
    if (found == present.end()) return "the kernel is gone";
    return found->second == row.sha256 ? "" : "the kernel changed since";
  };
}

std::vector<BestTime> history_of_best(const fs::path& root, const fs::path& bench,
                                      const std::string& problem) {
  std::vector<BestTime> history;
  const std::string path = fs::relative(bench, root).string();
  for (const auto& [version, content] : versions_of(Git(root), path)) {
    take_version(version, std::move(times_in(content)[problem]), history);
  }
  return history;
}

Result<std::string> leaderboard_markdown(const fs::path& root, const Filters& filters) {
  const Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return candidates.error();
  PlacedBenches benches;
  for (const fs::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_record(root, path);
    if (!bench) return bench.error();
    benches.emplace_back(path, std::move(*bench));
  }
  if (Result<Ok> kept = keep_devices(filters, benches); !kept) return kept.error();
  const Staleness staleness = staleness_by(*candidates);
  std::string text;
  for (const auto& [path, bench] : benches) {
    for (const Problem& problem : catalog()) {
      if (!filters.take(problem)) continue;
      std::vector<Standing> places = standings(bench, problem.id, staleness);
      std::erase_if(places, [&](const Standing& one) { return !filters.take(*one.row); });
      if (places.empty()) continue;
      text += (text.empty() ? "## " : "\n## ") + markdown_text(bench.device_name) + ", " +
              problem.id + "\n\n" + to_markdown(standings_table(places)) +
              history_text(history_of_best(root, path, problem.id));
    }
  }
  return text;
}

}  // namespace rekernel

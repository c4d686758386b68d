#include "harness/cli/leaderboard.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "harness/base/json.h"
#include "harness/cli/bench.h"
#include "harness/cli/git.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"
#include "ops/catalog.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

/// One version of a record: of each problem the fastest kernel that passed. Older versions have
/// other keys, so that nothing else is asked of them.
std::map<std::string, BestTime> best_times_in(const std::string& text) {
  std::map<std::string, BestTime> best;
  const Result<boost::json::value> json = parse_json(text, "an earlier record");
  if (!json) return best;
  JsonReader reader("an earlier record", *json);
  for (JsonReader& row : reader.required("rows").array()) {
    const std::string problem = row.required("problem").string();
    const std::string kernel = row.required("kernel").string();
    const bool passed = row.required("status").string() == "passed";
    const std::int64_t median_ns =
        row.required("median_ns").integer(0, std::numeric_limits<std::int64_t>::max());
    BestTime& so_far = best[problem];
    if (!passed || median_ns == 0) continue;
    if (so_far.median_ns == 0 || median_ns < so_far.median_ns) so_far = {"", "", kernel, median_ns};
  }
  return reader.error() ? std::map<std::string, BestTime>{} : best;
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
      versions.emplace_back(BestTime{line.substr(blank + 1), commit, "", 0}, std::move(*content));
    }
  }
  return versions;
}

std::string history_text(const std::vector<BestTime>& history) {
  std::string text;
  for (const BestTime& one : history) {
    text += (text.empty() ? "Best time: " : ", then ") + milliseconds(one.median_ns) + " ms (`" +
            one.kernel + "`, " + one.date + ")";
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
    std::map<std::string, BestTime> best = best_times_in(content);
    BestTime& of_problem = best[problem];
    if (of_problem.median_ns == 0) continue;
    of_problem.date = version.date;
    of_problem.commit = version.commit;
    if (history.empty() || of_problem.median_ns < history.back().median_ns) {
      history.push_back(of_problem);
    }
  }
  return history;
}

Result<std::string> leaderboard_markdown(const fs::path& root,
                                         const std::vector<std::string>& problems) {
  const Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return candidates.error();
  const Staleness staleness = staleness_by(*candidates);
  std::string text;
  for (const fs::path& path : recorded_benches(root)) {
    const Result<Bench> bench = load_bench_of(root, path);
    if (!bench) return bench.error();
    for (const Problem& problem : catalog()) {
      const bool asked = problems.empty() ||
                         std::find(problems.begin(), problems.end(), problem.id) != problems.end();
      const std::vector<Standing> places =
          asked ? standings(*bench, problem.id, staleness) : std::vector<Standing>{};
      if (places.empty()) continue;
      text += (text.empty() ? "## " : "\n## ") + bench->device_name + ", " + problem.id + "\n\n" +
              to_markdown(standings_table(places)) +
              history_text(history_of_best(root, path, problem.id));
    }
  }
  return text;
}

}  // namespace rekernel

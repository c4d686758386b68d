#include "harness/pull_request/comment.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/json.h"
#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/records/report.h"
#include "harness/report/leaderboard.h"

namespace rekernel {

namespace {

Table resource_table(const std::vector<ResourceUse>& uses) {
  Table table;
  table.columns = {{.heading = "target"},
                   {.heading = "kernel", .markdown = true},
                   {.heading = "registers", .right_aligned = true},
                   {.heading = "of a block, of 65536", .right_aligned = true},
                   {.heading = "shared memory", .right_aligned = true},
                   {.heading = "of", .right_aligned = true},
                   {.heading = "spills", .right_aligned = true}};
  for (const ResourceUse& use : uses) {
    table.rows.push_back({use.target, markdown_code(use.kernel), std::to_string(use.registers),
                          std::to_string(use.block_registers), std::to_string(use.shared_bytes),
                          std::to_string(use.shared_limit), std::to_string(use.spill_bytes)});
  }
  return table;
}

/// "rank 2 of 4 (before: the best was online with 0.5111 ms; this one takes 3.1% ± 0.4 longer)"
std::string ranks_text(const PullRequestFindings& found) {
  Bench before;
  if (found.base_record) {
    const Result<boost::json::value> json = parse_json(*found.base_record, "the base's record");
    Result<Bench> read =
        json ? bench_from_json(*json, "the base's record") : Result<Bench>(json.error());
    if (read) before = std::move(*read);
  }
  Bench after = before;
  Bench news;
  news.device_name = found.measured_on;
  news.rows = {*found.measured};
  merge(after, news);
  const std::vector<Standing> then = standings(before, found.measured->problem, {});
  const std::vector<Standing> now = standings(after, found.measured->problem, {});
  const auto place = std::find_if(now.begin(), now.end(), [&](const Standing& one) {
    return one.row->kernel == found.measured->kernel;
  });
  if (place == now.end() || place->rank == 0) return "";
  std::string text = "Rank " + std::to_string(place->rank) + " of " + std::to_string(now.size()) +
                     " on " + markdown_code(found.measured_on);
  if (!then.empty() && then.front().rank == 1) {
    text += "; before, the best was " + markdown_code(then.front().row->kernel) + " with " +
            milliseconds(then.front().row->median_ns) + " ms";
    if (const auto difference = difference_text(*then.front().row, *found.measured)) {
      text += "; against it, the time is " + *difference;
    }
  } else {
    text += "; before, there was none";
  }
  return text + ".\n";
}

std::string verdict_text(const PullRequestFindings& found) {
  if (!found.measured) return "";
  const BenchRow& row = *found.measured;
  std::string text = "### Verdict: " + std::string(to_string(row.status)) + "\n\n";
  if (!row.message.empty()) text += markdown_code(row.message) + "\n\n";
  if (row.status != Status::passed) return text;
  Bench bench;
  bench.rows = {row};
  text += to_markdown(bench_table(bench, {})) + "\n" + ranks_text(found);
  text += "Largest error " + row.max_error + " (library " + row.library_max_error + "), " +
          row.tolerance_share + " of the tolerance.\n";
  if (!row.badge_notes.empty()) text += "Badges refused: " + markdown_code(row.badge_notes) + "\n";
  return text + "\n";
}

}  // namespace

std::string to_markdown(const PullRequestFindings& found) {
  constexpr std::size_t max_complaints = 60;
  // The line that .github/comment.sh looks for.
  std::string text = "## rekernel verify\n\nCommit " + markdown_code(found.commit) + ", onto " +
                     markdown_code(found.base) + ".\n\n";
  text += found.candidate ? "Candidate: " + markdown_code(found.folder) + "\n\n" : "";
  if (found.complaints.empty()) {
    text += "No complaints.\n\n";
  } else {
    text += "### " + counted(found.complaints.size(), "complaint") + "\n\n";
    for (std::size_t i = 0; i < std::min(max_complaints, found.complaints.size()); ++i) {
      text += "- " + markdown_code(found.complaints[i].file) + ": " +
              markdown_code(found.complaints[i].message) + "\n";
    }
    if (found.complaints.size() > max_complaints) {
      text += "- and " + std::to_string(found.complaints.size() - max_complaints) + " more\n";
    }
    text += "\n";
  }
  text += verdict_text(found);
  if (!found.uses.empty())
    text += "### Resources\n\n" + to_markdown(resource_table(found.uses)) + "\n";
  if (!found.left.empty()) {
    text += "### Left to do\n\n";
    for (const std::string& one : found.left) text += "- " + markdown_code(one) + "\n";
  }
  return text;
}

boost::json::object to_json(const PullRequestFindings& found) {
  boost::json::array complaints;
  for (const PullRequestComplaint& one : found.complaints) {
    complaints.push_back({{"file", one.file}, {"message", one.message}});
  }
  boost::json::object result{{"schema", 1},
                             {"base", found.base},
                             {"commit", found.commit},
                             {"complaints", std::move(complaints)},
                             {"candidate", nullptr},
                             {"verdict", nullptr},
                             {"left", boost::json::value_from(found.left)},
                             {"comment", to_markdown(found)}};
  if (found.candidate) result["candidate"] = found.folder;
  if (found.measured) result["verdict"] = to_string(found.measured->status);
  return result;
}

}  // namespace rekernel

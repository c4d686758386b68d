#include "harness/report/published_runs.h"

#include <boost/json.hpp>

#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/project/unfinished_searches.h"
#include "harness/terminal/tables.h"
#include "replay/report/replay_report.h"
#include "replay/trajectory/trajectory.h"

namespace rekernel {

namespace {

/// Reads the first line alone: most trajectories have no published run beside them.
Result<bool> has_published_run(const std::filesystem::path& path) {
  Result<Trajectory> trajectory = Trajectory::open(path, Trajectory::Access::read);
  if (!trajectory) return trajectory.error();
  const Result<const boost::json::object*> first = trajectory->peek();
  if (!first) return first.error();
  return *first && (*first)->contains("published");
}

}  // namespace

Result<std::vector<ReplayedSearch>> published_runs(const std::filesystem::path& root) {
  std::vector<ReplayedSearch> runs;
  std::vector<std::string> left_out;  // told where searches are replayed
  for (const std::filesystem::path& path : finished_trajectories(root, left_out)) {
    const Result<bool> published = has_published_run(path);
    if (!published) return published.error();
    if (!*published) continue;
    Replay replay = replay_exactly(path);
    if (replay.interruption) return Error{replay.interruption->message};
    if (replay.search.header.published) runs.push_back(std::move(replay.search));
  }
  return runs;
}

std::string published_runs_text(const std::vector<ReplayedSearch>& runs,
                                const TableFormat& format) {
  std::string text;
  for (const ReplayedSearch& run : runs) {
    text += run.header.name + "\n" + format.shown(round_table(run)) + "\n" +
            format.words(published_run_caption(run));
  }
  return text;
}

std::string published_runs_markdown(const std::vector<ReplayedSearch>& runs) {
  std::string text;
  for (const ReplayedSearch& run : runs) {
    text += "\n" + to_markdown(round_table(run)) + "\n" +
            markdown_text(run.header.name + ": " + published_run_caption(run)) + "\n";
  }
  return text;
}

}  // namespace rekernel

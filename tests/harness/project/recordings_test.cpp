#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>

#include "harness/project/git.h"
#include "harness/project/unfinished_searches.h"
#include "replay/playback/replayer.h"
#include "replay/search/study.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

TEST(CommittedTrajectories, ReplayByteForByte) {
  std::vector<std::string> left_out;  // this user's own searches, on the way
  const auto paths = finished_trajectories(REKERNEL_SOURCE_DIR, left_out);
  ASSERT_FALSE(paths.empty());
  for (const auto& path : paths) {
    const Replay replay = replay_exactly(path);
    EXPECT_FALSE(replay.interruption) << replay.interruption->message;
    EXPECT_EQ(replay.search.header.name, path.stem().string());
    EXPECT_FALSE(replay.search.stop_reason.empty()) << path << " is not finished";
    EXPECT_FALSE(replay.search.candidates.empty()) << path;
  }
}

/// A search without its end, and a study of one search, in a repository where both are committed.
TEST(FinishedTrajectories, LeaveOutWhatAStudyUnderWayHasBegun) {
  const TemporaryFolder folder;
  const std::filesystem::path trajectories = folder.path() / "trajectories";
  std::filesystem::create_directories(trajectories / "two");
  for (const char* name : {"two-gelu", "alone"}) {
    std::ofstream(trajectories / (std::string(name) + ".jsonl")) << "{\"event\": \"header\"}\n";
  }
  const Git git(folder.path());
  for (const auto& command : std::vector<std::vector<std::string>>{{"init", "-q"}, {"add", "-A"}}) {
    ASSERT_TRUE(git.run(command));
  }
  std::vector<std::string> left_out;
  EXPECT_EQ(finished_trajectories(folder.path(), left_out).size(), 2u);
  EXPECT_TRUE(left_out.empty());
  const std::vector<std::string> problems{"gelu", "rmsnorm"};
  boost::json::object study{{"schema", 1},
                            {"name", "two"},
                            {"problems", boost::json::value_from(problems)},
                            {"profiled", boost::json::value_from(drawn(problems, 1))},
                            {"search", {{"target", "h200"}, {"slow_seed", true}}}};
  std::ofstream(trajectories / "two/study.json") << study;
  ASSERT_TRUE(load_study(trajectories / "two/study.json"))
      << load_study(trajectories / "two/study.json").error().message;
  const auto finished = finished_trajectories(folder.path(), left_out);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished.front().stem(), "alone");
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_NE(left_out.front().find("of a study under way"), std::string::npos) << left_out.front();
}

}  // namespace
}  // namespace rekernel

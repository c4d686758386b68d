#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "harness/project/unfinished_searches.h"
#include "replay/playback/replayer.h"

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

}  // namespace
}  // namespace rekernel

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "replay/playback/replayer.h"

namespace rekernel {
namespace {

TEST(CommittedTrajectories, ReplayByteForByte) {
  const auto paths = recorded_trajectories(REKERNEL_SOURCE_DIR);
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

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "replay/replayer.h"

namespace rekernel {
namespace {

TEST(CommittedTrajectories, ReplayByteForByte) {
  for (const auto& path : recorded_trajectories(REKERNEL_SOURCE_DIR)) {
    const Replay replay = replay_exactly(path);
    EXPECT_FALSE(replay.interruption) << replay.interruption->message;
    EXPECT_EQ(replay.search.header.name, path.stem().string());
    EXPECT_FALSE(replay.search.stop_reason.empty()) << path << " is not finished";
  }
}

}  // namespace
}  // namespace rekernel

#include "harness/base/time_left.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(DurationText, IsInUnitsThatAPersonReads) {
  EXPECT_EQ(duration_text(seconds(0)), "0 s");
  EXPECT_EQ(duration_text(seconds(99)), "99 s");
  EXPECT_EQ(duration_text(seconds(100)), "2 min");
  EXPECT_EQ(duration_text(seconds(5400)), "90 min");
  EXPECT_EQ(duration_text(seconds(10800)), "3 h");
  EXPECT_EQ(duration_text(seconds(12000)), "3 h 20 min");
}

TEST(TimeLeft, IsThatOfTheRemainingParts) {
  EXPECT_EQ(time_left(seconds(10), 1, 5), "about 40 s left");
  EXPECT_EQ(time_left(seconds(60), 1, 4), "about 3 min left");
  EXPECT_EQ(time_left(hours(1), 1, 4), "about 3 h left");
  EXPECT_EQ(time_left(seconds(3), 99, 100), "about 1 s left");
}

TEST(TimeLeft, IsUnknownAtFirstAndNothingAtTheEnd) {
  EXPECT_EQ(time_left(seconds(10), 0, 5), "");
  EXPECT_EQ(time_left(milliseconds(1999), 1, 5), "");
  EXPECT_EQ(time_left(seconds(10), 5, 5), "");
}

TEST(TimeLeft, StandsBesideHowMuchIsDone) {
  const TimeLeft left(40, TimeLeft::Clock::now() - minutes(10));
  EXPECT_EQ(left.text(0), "0 of 40");
  EXPECT_EQ(left.text(20), "20 of 40, about 10 min left");
  EXPECT_EQ(left.text(40), "40 of 40");
}

}  // namespace
}  // namespace rekernel

#include "harness/base/text.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Text, CountsInEnglish) {
  EXPECT_EQ(counted(0, "complaint"), "0 complaints");
  EXPECT_EQ(counted(1, "complaint"), "1 complaint");
  EXPECT_EQ(counted(2, "complaint"), "2 complaints");
}

TEST(Text, TimeLeftIsThatOfTheRemainingParts) {
  EXPECT_EQ(time_left(seconds(10), 1, 5), "about 40 s left");
  EXPECT_EQ(time_left(seconds(60), 1, 4), "about 3 min left");
  EXPECT_EQ(time_left(hours(1), 1, 4), "about 3 h left");
  EXPECT_EQ(time_left(seconds(3), 99, 100), "about 1 s left");
}

TEST(Text, TimeLeftIsUnknownAtFirstAndNothingAtTheEnd) {
  EXPECT_EQ(time_left(seconds(10), 0, 5), "");
  EXPECT_EQ(time_left(milliseconds(1999), 1, 5), "");
  EXPECT_EQ(time_left(seconds(10), 5, 5), "");
}

}  // namespace
}  // namespace rekernel

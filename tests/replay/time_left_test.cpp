#include "replay/time_left.h"

#include <gtest/gtest.h>

#include <thread>

namespace rekernel {
namespace {

using std::chrono::seconds;

TEST(DurationText, IsInUnitsThatAPersonReads) {
  EXPECT_EQ(duration_text(seconds(0)), "0 s");
  EXPECT_EQ(duration_text(seconds(99)), "99 s");
  EXPECT_EQ(duration_text(seconds(100)), "2 min");
  EXPECT_EQ(duration_text(seconds(5400)), "90 min");
  EXPECT_EQ(duration_text(seconds(12000)), "3 h 20 min");
}

TEST(TimeLeft, GoesByThePaceSoFar) {
  const TimeLeft left(40);
  EXPECT_EQ(left.text(0), "0 of 40");
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(left.text(40), "40 of 40");
  const std::string text = left.text(1);  // at least 39 times 60 ms
  EXPECT_TRUE(text.starts_with("1 of 40, ") && text.ends_with(" s left")) << text;
  EXPECT_GE(std::stoi(text.substr(9)), 3);
}

}  // namespace
}  // namespace rekernel

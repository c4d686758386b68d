#include "harness/gpu/choice.h"

#include <gtest/gtest.h>

#include "harness/gpu/identity.h"

namespace rekernel {
namespace {

const std::vector<VisibleGpu> four{{0, "NVIDIA H200", 9, 0},
                                   {1, "NVIDIA H200", 9, 0},
                                   {2, "NVIDIA H200", 9, 0},
                                   {3, "NVIDIA L40S", 8, 9}};

/// "0 2", or the error.
std::string chosen(const std::string& names, bool mixed = false) {
  const auto gpus = choose_gpus(names, four, mixed);
  if (!gpus) return gpus.error().message;
  std::string text;
  for (const VisibleGpu& gpu : *gpus)
    text += (text.empty() ? "" : " ") + std::to_string(gpu.ordinal);
  return text;
}

TEST(ChoiceOfGpus, AreAllOrNumbers) {
  EXPECT_EQ(chosen("0,2"), "0 2");
  EXPECT_EQ(chosen("2"), "2");
  EXPECT_EQ(chosen("3"), "3");
  EXPECT_EQ(chosen("all", true), "0 1 2 3");
}

TEST(ChoiceOfGpus, ThatAreNoneAreNamed) {
  EXPECT_EQ(chosen("0,4"), "--gpus: 4: expected numbers from 0 to 3");
  EXPECT_EQ(chosen("0,1,0"), "--gpus: 0 appears twice");
  for (const char* bad : {"", "0,", ",1", "-1", "a", "0 1", "0;1", "99999999999"}) {
    EXPECT_EQ(chosen(bad), "--gpus: expected all, or numbers as 0,2") << bad;
  }
}

TEST(ChoiceOfGpus, OfAnotherKindAreRefusedUnlessAskedFor) {
  EXPECT_EQ(
      chosen("all"),
      "GPU 3 (NVIDIA L40S, 8.9) is of another kind than GPU 0 (NVIDIA H200, 9.0): their times "
      "cannot be compared. Choose some with --gpus, or take all the same with --mixed-gpus");
  EXPECT_EQ(chosen("2,3", true), "2 3");
  // Where times go into one record, nobody can ask.
  const auto gpus = choose_gpus("2,3", four, std::nullopt);
  ASSERT_FALSE(gpus);
  EXPECT_TRUE(gpus.error().message.ends_with("be compared. Choose some with --gpus"));
}

TEST(VisibleAlone, IsWhatTheVariableCallsTheGpu) {
  EXPECT_EQ(visible_alone(nullptr, 3), "3");
  EXPECT_EQ(visible_alone("4,6,GPU-0b1", 0), "4");
  EXPECT_EQ(visible_alone("4,6,GPU-0b1", 2), "GPU-0b1");
  EXPECT_EQ(visible_alone("4", 1), "");  // no GPU, and not another one
}

}  // namespace
}  // namespace rekernel

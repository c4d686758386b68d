#include "harness/explain/advice.h"

#include <gtest/gtest.h>

#include <set>

namespace rekernel {
namespace {

TEST(Advice, ThereIsAGeneralOneForEveryStatus) {
  std::set<Status> general;
  for (const Advice& advice : all_advice()) {
    EXPECT_FALSE(general.contains(advice.status))
        << to_string(advice.status) << ": nothing may follow the general row: " << advice.sign;
    if (advice.sign.empty()) general.insert(advice.status);
    for (const std::string_view text : {advice.meaning, advice.cause, advice.change}) {
      EXPECT_FALSE(text.empty()) << to_string(advice.status) << " " << advice.sign;
    }
  }
  // Statuses are numbered from passed on; the first number without a name ends them.
  const std::set<std::string_view> names = {
      "passed",         "invalid_plan",     "compile_failed", "launch_failed",
      "timed_out",      "crashed",          "wrong_result",   "out_of_bounds_write",
      "modified_input", "implausible_time", "forged_time"};
  for (const std::string_view name : names) {
    const std::optional<Status> status = status_from_string(name);
    ASSERT_TRUE(status) << name;
    EXPECT_TRUE(general.contains(*status)) << name;
  }
  EXPECT_EQ(general.size(), static_cast<std::size_t>(Status::forged_time) + 1);
  EXPECT_EQ(names.size(), general.size());
}

TEST(Advice, IsThatOfTheCheckOrOfTheMessage) {
  const auto sign = [](Status status, const char* check, const char* message) {
    return advice_for(status, check, message).sign;
  };
  EXPECT_EQ(sign(Status::wrong_result, "rms error", "rms error 3 at rms(truth) 2"), "rms error");
  EXPECT_EQ(sign(Status::wrong_result, "unwritten elements",
                 "4 of 8 elements outside the tolerance; first y[0] = nan, expected 1; 4 elements "
                 "were never written"),
            "unwritten elements");
  EXPECT_EQ(sign(Status::wrong_result, "", "1 of 8 elements outside the tolerance; first y[0] = 2"),
            "outside the tolerance");
  EXPECT_EQ(sign(Status::compile_failed, "", "kernel.cu(1): error: identifier \"b\" is undefined"),
            "is undefined");
  EXPECT_EQ(sign(Status::crashed, "", "CUDA_ERROR_ILLEGAL_ADDRESS"), "ILLEGAL_ADDRESS");
  EXPECT_EQ(sign(Status::timed_out, "", "the run took longer than 20 s"), "");
}

}  // namespace
}  // namespace rekernel

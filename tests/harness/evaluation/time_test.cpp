#include "harness/evaluation/time.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace rekernel {
namespace {

TEST(Time, EverySubjectGetsItsSamplesInNanoseconds) {
  std::int64_t next = 0;
  const auto samples = measure_interleaved(
      {{"counting", [&] { return 1'000'000 + next++; }, 12}, {"seven", [] { return 7; }, 5}});
  ASSERT_EQ(samples.at("counting").size(), 12u);
  for (std::int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(samples.at("counting")[static_cast<std::size_t>(i)], 1'000'000 + i);
  }
  EXPECT_EQ(samples.at("seven"), std::vector<std::int64_t>(5, 7));
}

TEST(Time, SubjectsAreInterleaved) {
  std::string order;
  measure_interleaved(
      {{"a", [&] { return order += 'a', 1; }, 40}, {"b", [&] { return order += 'b', 1; }, 40}});
  EXPECT_EQ(order.size(), 80u);
  EXPECT_NE(order, std::string(40, 'a') + std::string(40, 'b'));
  EXPECT_NE(order, std::string(40, 'b') + std::string(40, 'a'));
}

TEST(Time, AnExceptionEndsTheMeasurementAndTravelsOn) {
  int samples = 0;
  EXPECT_THROW(measure_interleaved({{"failing",
                                     [&]() -> std::int64_t {
                                       if (++samples == 3) throw std::runtime_error("fault");
                                       return 1;
                                     },
                                     10}}),
               std::runtime_error);
  EXPECT_EQ(samples, 3);
  EXPECT_EQ(measure_interleaved({{"next", [] { return 5; }, 2}}).at("next").size(), 2u);
}

}  // namespace
}  // namespace rekernel

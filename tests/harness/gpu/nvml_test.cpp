#include "harness/gpu/nvml.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

GpuReading reading(std::int64_t reasons) {
  GpuReading reading;
  reading.throttle_reasons = reasons;
  return reading;
}

// The values of nvmlClocksEventReasons in NVML's documentation.
TEST(Throttling, IsWhatSlowsTheClockAgainstItsWill) {
  EXPECT_TRUE(reading(0x08).throttled());         // hardware slowdown
  EXPECT_TRUE(reading(0x10).throttled());         // sync boost
  EXPECT_TRUE(reading(0x20).throttled());         // software thermal slowdown
  EXPECT_TRUE(reading(0x40).throttled());         // hardware thermal slowdown
  EXPECT_TRUE(reading(0x80).throttled());         // power brake
  EXPECT_TRUE(reading(0x04 | 0x40).throttled());  // among others
}

TEST(Throttling, IsNotWhatIsNormal) {
  EXPECT_FALSE(reading(0).throttled());
  EXPECT_FALSE(reading(0x001).throttled());  // idle
  EXPECT_FALSE(reading(0x002).throttled());  // the clocks that were asked for
  EXPECT_FALSE(reading(0x004).throttled());  // software power cap
  EXPECT_FALSE(reading(0x100).throttled());  // the clocks of the display
}

}  // namespace
}  // namespace rekernel

#include "ops/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace rekernel {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr DType narrow_floats[] = {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2};

std::uint64_t half_bits(double value) { return stored_bits(DType::f16, value); }
double half_value(std::uint64_t bits) { return stored_value(DType::f16, bits); }

TEST(Half, AllBitPatternsRoundTrip) {
  for (int bits = 0; bits < 65536; ++bits) {
    const double value = half_value(bits);
    const bool is_nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    ASSERT_EQ(std::isnan(value), is_nan) << bits;
    if (!is_nan) {
      ASSERT_EQ(half_bits(value), bits);
    }
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(half_value(0x3c00), 1.0);
  EXPECT_EQ(half_value(0xc000), -2.0);
  EXPECT_EQ(half_value(0x7bff), 65504.0);
  EXPECT_EQ(half_value(0x0400), std::ldexp(1.0, -14));
  EXPECT_EQ(half_value(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(half_value(0x7c00), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::signbit(half_value(0x8000)));
  EXPECT_EQ(half_bits(1.0 / 3.0), 0x3555);
  EXPECT_EQ(half_bits(-0.0), 0x8000);
  EXPECT_EQ(half_bits(std::numeric_limits<double>::quiet_NaN()) & 0x7e00, 0x7e00);
}

TEST(Half, RoundsToNearestTiesToEven) {
  EXPECT_EQ(half_bits(1.0 + std::ldexp(1.0, -11)), 0x3c00);
  EXPECT_EQ(half_bits(1.0 + std::ldexp(1.0, -11) + 1e-12), 0x3c01);
  EXPECT_EQ(half_bits(1.0 + std::ldexp(3.0, -11)), 0x3c02);
  EXPECT_EQ(half_bits(2.0 - std::ldexp(1.0, -12)), 0x4000);
  EXPECT_EQ(half_bits(std::ldexp(1.0, -25)), 0x0000);
  EXPECT_EQ(half_bits(std::ldexp(1.0, -25) * 1.001), 0x0001);
  EXPECT_EQ(half_bits(std::ldexp(3.0, -25)), 0x0002);
  EXPECT_EQ(half_bits(std::ldexp(1.0, -14) - std::ldexp(1.0, -26)), 0x0400);
  EXPECT_EQ(half_bits(65519.99), 0x7bff);
  EXPECT_EQ(half_bits(65520.0), 0x7c00);
  EXPECT_EQ(half_bits(-1e9), 0xfc00);
  EXPECT_EQ(half_bits(1e-300), 0x0000);
}

TEST(StoredBits, AllPatternsOfNarrowFloatsRoundTrip) {
  for (const DType dtype : narrow_floats) {
    const std::uint64_t patterns = std::uint64_t{1} << (8 * size_in_bytes(dtype));
    int nans = 0;
    for (std::uint64_t bits = 0; bits < patterns; ++bits) {
      const double value = stored_value(dtype, bits);
      if (std::isnan(value)) {
        ++nans;
        continue;
      }
      ASSERT_EQ(stored_bits(dtype, value), bits) << to_string(dtype);
      ASSERT_EQ(rounded_to(dtype, value), value) << to_string(dtype);
    }
    const int fractions = 1 << (float_format(dtype)->significand_bits - 1);
    EXPECT_EQ(nans, float_format(dtype)->has_infinity ? 2 * (fractions - 1) : 2);
  }
}

// What the device rounds with, against what the host rounds numbers of any size with.
TEST(StoredBits, AreThoseOfTheNearestValue) {
  std::uint32_t pattern = 12345;
  for (const DType dtype : narrow_floats) {
    const exact::Encoding encoding = encoding_of(dtype);
    for (int i = 0; i < 200'000; ++i) {
      pattern = pattern * 1664525u + 1013904223u;
      const auto value = std::bit_cast<float>(pattern);
      if (!std::isfinite(value)) continue;
      const double nearest = rounded_to(dtype, value);
      const double stored =
          exact::value_of(encoding, exact::stored<std::uint32_t>(encoding, value));
      if (std::isfinite(nearest) || size_in_bytes(dtype) > 1) {
        ASSERT_EQ(stored, nearest) << to_string(dtype) << " of " << value;
        ASSERT_EQ(std::signbit(stored), std::signbit(nearest));
      } else {
        ASSERT_EQ(stored, std::copysign(float_format(dtype)->largest, value));
      }
    }
  }
}

TEST(StoredBits, OfTypesOf8Bits) {
  EXPECT_EQ(stored_bits(DType::f8e4m3, 1.0), 0x38u);
  EXPECT_EQ(stored_bits(DType::f8e4m3, 448.0), 0x7eu);
  EXPECT_EQ(stored_bits(DType::f8e4m3, -0.001953125), 0x81u);  // the smallest, 2^-9
  EXPECT_EQ(stored_bits(DType::f8e4m3, 500.0), 0x7fu);         // NaN
  EXPECT_EQ(stored_bits(DType::f8e5m2, 1.0), 0x3cu);
  EXPECT_EQ(stored_bits(DType::f8e5m2, 57344.0), 0x7bu);
  EXPECT_EQ(stored_bits(DType::f8e5m2, infinity), 0x7cu);
  EXPECT_EQ(stored_value(DType::f8e5m2, 0xfc), -infinity);
}

TEST(StoredBits, OfIntegersAndConditions) {
  EXPECT_EQ(stored_bits(DType::i8, -2), 0xfeu);
  EXPECT_EQ(stored_value(DType::i8, 0xfe), -2);
  EXPECT_EQ(stored_bits(DType::i32, -1), 0xffffffffu);
  EXPECT_EQ(stored_value(DType::i32, 0x80000000u), -2147483648.0);
  EXPECT_EQ(stored_value(DType::i64, ~std::uint64_t{4}), -5);
  EXPECT_EQ(stored_value(DType::u8, 0xfe), 254);
  EXPECT_EQ(stored_value(DType::boolean, 1), 1);
  EXPECT_TRUE(std::isnan(stored_value(DType::boolean, 0xff)));
  EXPECT_TRUE(std::isnan(stored_value(DType::boolean, 2)));
}

TEST(StoredBits, OfSinglesAndDoubles) {
  EXPECT_EQ(stored_bits(DType::f32, 0.1), std::bit_cast<std::uint32_t>(0.1f));
  EXPECT_EQ(stored_value(DType::f32, stored_bits(DType::f32, 0.1)), static_cast<double>(0.1f));
  EXPECT_EQ(stored_value(DType::f64, stored_bits(DType::f64, 0.1)), 0.1);
  EXPECT_THROW(encoding_of(DType::f64), std::logic_error);
}

TEST(RoundedTo, BeyondTheLargestIsInfinityOrNaN) {
  EXPECT_EQ(rounded_to(DType::bf16, 1e39), infinity);
  EXPECT_EQ(rounded_to(DType::f16, -65520.0), -infinity);
  EXPECT_EQ(rounded_to(DType::f8e4m3, 464.0), 448.0);  // the tie goes to the even one
  EXPECT_TRUE(std::isnan(rounded_to(DType::f8e4m3, 465.0)));
  EXPECT_TRUE(std::isnan(rounded_to(DType::f8e4m3, infinity)));
  EXPECT_EQ(rounded_to(DType::f32, infinity), infinity);
  EXPECT_EQ(rounded_to(DType::i8, 3), 3);
}

}  // namespace
}  // namespace rekernel

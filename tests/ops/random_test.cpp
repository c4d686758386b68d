#include "ops/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace rekernel::random {
namespace {

std::array<unsigned, 4> words(const Words& value) {
  return {value.word[0], value.word[1], value.word[2], value.word[3]};
}

// Known answers that the generator's authors publish with it (Random123, philox4x32, 10 rounds).
/// An element outside of odd rows and no outlier.
float drawn(int kind, float a, float b, unsigned word) {
  random::Parameters parameters{};
  parameters.kind = kind;
  parameters.a = a;
  parameters.b = b;
  parameters.stretch_bits = 2;
  return random::draw(parameters, word, 0, 0);
}

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(words(philox({{0, 0, 0, 0}}, 0, 0)),
            (std::array<unsigned, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const unsigned ones = 0xffffffff;
  EXPECT_EQ(words(philox({{ones, ones, ones, ones}}, ones, ones)),
            (std::array<unsigned, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      words(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0)),
      (std::array<unsigned, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryBitOfSeedStreamAndPositionCounts) {
  const auto base = words(words_of_quad(0, 0, 0));
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(words(words_of_quad(1ull << bit, 0, 0)), base) << "seed bit " << bit;
    EXPECT_NE(words(words_of_quad(0, 0, 1ull << bit)), base) << "position bit " << bit;
  }
  for (int bit = 0; bit < 32; ++bit) EXPECT_NE(words(words_of_quad(0, 1u << bit, 0)), base);
}

TEST(MinusLog2, AgreesWithTheLibrary) {
  float worst = 0.0f;
  for (int exponent = 0; exponent <= 32; ++exponent) {
    for (int step = 0; step < 4096; ++step) {
      const float x = std::ldexp(0.5f + step / 8192.0f, -exponent);
      const double difference = minus_log2(x) + std::log2(static_cast<double>(x));
      worst = std::max(worst, static_cast<float>(std::fabs(difference)));
    }
  }
  EXPECT_LE(worst, 4e-6f);  // half a unit in the last place of 32 is 2e-6
  EXPECT_EQ(minus_log2(1.0f), 0.0f);
}

// z against the tail probability that its word stands for: erfc(|z| ÷ √2) = q, to first order in z.
TEST(StandardNormal, InvertsTheDistribution) {
  const double sqrt_half = std::sqrt(0.5);
  const double density_at_0 = 1.0 / std::sqrt(2.0 * std::acos(-1.0));
  const auto error_of = [&](unsigned word) {
    const double z = std::fabs(standard_normal(word));
    const double q = (2.0 * (word & 0x7fffffffu) + 1.0) / 4294967296.0;
    const double density = density_at_0 * std::exp(-0.5 * z * z);
    return std::fabs(std::erfc(z * sqrt_half) - q) / (2.0 * density);
  };
  double worst = 0.0;
  for (unsigned word = 0; word < 0x80000000u - 9973u; word += 9973u) {
    worst = std::max(worst, error_of(word));
  }
  for (unsigned word = 0; word < 100'000u; ++word) worst = std::max(worst, error_of(word));
  EXPECT_LE(worst, 6e-6);
}

TEST(StandardNormal, IsSymmetricMonotoneAndBounded) {
  float previous = standard_normal(0);
  EXPECT_NEAR(previous, 6.338f, 1e-3f);
  EXPECT_EQ(standard_normal(0x7fffffffu), 0.0f);
  EXPECT_NEAR(standard_normal(0x40000000u), 0.67449f, 1e-5f);  // the upper quartile
  for (unsigned word = 1; word < 0x80000000u - 65536u; word += 65536u) {
    const float z = standard_normal(word);
    EXPECT_LT(z, previous);
    EXPECT_EQ(standard_normal(word | 0x80000000u), -z);
    previous = z;
  }
}

TEST(Draw, UniformStaysBetweenItsBounds) {
  EXPECT_EQ(drawn(1, -0.25f, 1.5f, 0u), -0.25f);
  EXPECT_LE(drawn(1, -0.25f, 1.5f, 0xffffffffu), 1.5f);
  EXPECT_GT(drawn(1, -0.25f, 1.5f, 0xffffffffu), 1.4999f);
  EXPECT_EQ(drawn(1, -0.25f, 1.5f, 0x80000000u), 0.625f);
}

TEST(Draw, ConstantIgnoresTheWord) {
  EXPECT_EQ(drawn(2, 3.25f, 99.0f, 0u), 3.25f);
  EXPECT_EQ(drawn(2, 3.25f, 99.0f, 0xffffffffu), 3.25f);
}

}  // namespace
}  // namespace rekernel::random

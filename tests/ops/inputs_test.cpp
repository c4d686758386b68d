#include "ops/inputs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rekernel {
namespace {

const Distribution standard_normal{};
const Distribution uniform{Distribution::Kind::uniform, -0.25, 1.5};

std::uint32_t f32_bits(double value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

// Recorded results rest on these values: a change of the function must be deliberate.
TEST(InputValue, GoldenBits) {
  struct Golden {
    std::uint64_t seed;
    std::uint32_t stream;
    std::uint64_t index;
    std::uint32_t normal, uniform;
    std::uint16_t half;
  };
  const Golden goldens[] = {
      {0, 0, 0, 0x3e82fa50, 0x3ee58bac, 0x3418},
      {1, 2, 3, 0x3fe13d84, 0xbe39b315, 0x3f0a},
      {42, 0xfd0c5087, 1'000'000, 0xc02e1da7, 0x3f2175b7, 0xc171},
      {0xfeedfacecafebeef, 0xffffffff, (1ull << 40) + 5, 0x3f916f1e, 0xbcd5ea58, 0x3c8b},
  };
  for (const Golden& golden : goldens) {
    const auto value = [&](const Distribution& distribution, DType dtype) {
      return input_value(distribution, dtype, golden.seed, golden.stream, golden.index);
    };
    EXPECT_EQ(f32_bits(value(standard_normal, DType::f32)), golden.normal);
    EXPECT_EQ(f32_bits(value(uniform, DType::f32)), golden.uniform);
    EXPECT_EQ(stored_bits(DType::f16, value(standard_normal, DType::f16)), golden.half);
  }
}

TEST(InputValue, MeanAndDeviationScaleTheSameDraw) {
  const Distribution shifted{Distribution::Kind::normal, 1000.0, 0.1};
  for (std::uint64_t index = 0; index < 1000; ++index) {
    const auto z = static_cast<float>(input_value(standard_normal, DType::f32, 5, 6, index));
    EXPECT_EQ(input_value(shifted, DType::f32, 5, 6, index), std::fma(0.1f, z, 1000.0f));
    EXPECT_EQ(input_value(standard_normal, DType::f16, 5, 6, index), rounded_to(DType::f16, z));
  }
}

TEST(InputValue, OneRowIsOddAndTheOthersStayAsTheyAre) {
  constexpr std::uint64_t rows = 9;
  constexpr std::uint64_t elements = 10;
  Distribution zeros;
  zeros.odd_row = {rows, elements, 0.0, 0.0};
  Distribution shifted;
  shifted.odd_row = {rows, elements, 1000.0, 1.0};
  std::set<std::uint64_t> chosen;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    std::uint64_t odd = 0;
    for (std::uint64_t row = 0; row < rows; ++row) {
      int different = 0;
      for (std::uint64_t i = row * elements; i < (row + 1) * elements; ++i) {
        const double usual = input_value(standard_normal, DType::f32, seed, 2, i);
        const double value = input_value(zeros, DType::f32, seed, 2, i);
        if (value == usual) continue;
        ++different;
        EXPECT_EQ(value, 0.0);
        EXPECT_FALSE(std::signbit(value));
        EXPECT_EQ(input_value(shifted, DType::f32, seed, 2, i),
                  static_cast<float>(usual) + 1000.0f);
      }
      EXPECT_TRUE(different == 0 || different == elements) << different;
      if (different == 0) continue;
      ++odd;
      chosen.insert(row);
    }
    EXPECT_EQ(odd, 1u) << seed;
  }
  EXPECT_EQ(chosen.size(), rows);  // all of them, over 64 seeds
}

TEST(InputValue, EachStretchHasOneOutlier) {
  constexpr std::uint64_t stretch = 32;
  Distribution distribution;
  distribution.outliers = {stretch, 200.0};
  std::set<std::uint64_t> places;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t begin = 0; begin < 10 * stretch; begin += stretch) {
      int found = 0;
      for (std::uint64_t i = begin; i < begin + stretch; ++i) {
        const double value = input_value(distribution, DType::f32, seed, 2, i);
        if (value == input_value(standard_normal, DType::f32, seed, 2, i)) continue;
        EXPECT_EQ(value, 200.0);
        places.insert(i - begin);
        ++found;
      }
      EXPECT_EQ(found, 1);
    }
  }
  EXPECT_EQ(places.size(), stretch);  // everywhere, over 200 stretches
}

TEST(InputValue, DefectiveOdditiesAreThrown) {
  Distribution distribution;
  distribution.outliers = {6, 200.0};
  EXPECT_THROW(input_value(distribution, DType::f32, 0, 0, 0), std::logic_error);
  distribution.outliers.reset();
  distribution.odd_row = {0, 4, 0.0, 1.0};
  EXPECT_THROW(input_value(distribution, DType::f32, 0, 0, 0), std::logic_error);
}

TEST(InputValue, DefectiveDistributionsAreThrown) {
  const Distribution no_integers{Distribution::Kind::integers, 3, 3};
  EXPECT_THROW(input_value(no_integers, DType::i32, 0, 0, 0), std::logic_error);
  Distribution choice{Distribution::Kind::choice};
  EXPECT_THROW(input_value(choice, DType::f32, 0, 0, 0), std::logic_error);
  choice.choices.assign(Distribution::max_choices + 1, 1.0);
  EXPECT_THROW(input_value(choice, DType::f32, 0, 0, 0), std::logic_error);
  for (const DType dtype : {DType::f64, DType::u8}) {
    EXPECT_THROW(input_value(standard_normal, dtype, 0, 0, 0), std::logic_error);
  }
}

TEST(InputValue, IsRoundedToItsType) {
  const Distribution wide{Distribution::Kind::normal, 0.0, 30.0};
  for (const DType dtype : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    for (const Distribution& distribution : {standard_normal, wide}) {
      for (std::uint64_t index = 0; index < 1000; ++index) {
        const double single = input_value(distribution, DType::f32, 5, 6, index);
        EXPECT_EQ(input_value(distribution, dtype, 5, 6, index), rounded_to(dtype, single))
            << to_string(dtype) << " of " << single;
      }
    }
  }
}

TEST(InputValue, OfTypesOf8BitsIsAtMostTheLargest) {
  for (const auto& [dtype, largest] :
       {std::pair(DType::f8e4m3, 448.0), std::pair(DType::f8e5m2, 57344.0)}) {
    for (const double value : {largest, largest * 1.5, 1e30}) {
      const Distribution up{Distribution::Kind::constant, value};
      const Distribution down{Distribution::Kind::constant, -value};
      EXPECT_EQ(input_value(up, dtype, 0, 0, 0), largest);
      EXPECT_EQ(input_value(down, dtype, 0, 0, 0), -largest);
    }
  }
  const Distribution far{Distribution::Kind::constant, 1e30};
  EXPECT_EQ(input_value(far, DType::f16, 0, 0, 0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(input_value(far, DType::bf16, 0, 0, 0), rounded_to(DType::bf16, 1e30));
}

TEST(InputValue, IntegersAreEquallyOften) {
  for (const DType dtype : {DType::i8, DType::i32, DType::i64, DType::f32}) {
    const Distribution distribution{Distribution::Kind::integers, -3, 4};
    std::map<double, int> counts;
    for (std::uint64_t index = 0; index < 70'000; ++index) {
      ++counts[input_value(distribution, dtype, 7, 8, index)];
    }
    ASSERT_EQ(counts.size(), 7u);
    EXPECT_EQ(counts.begin()->first, -3);
    EXPECT_EQ(counts.rbegin()->first, 3);
    for (const auto& [value, count] : counts) EXPECT_NEAR(count, 10'000, 500) << value;
  }
  const Distribution all{Distribution::Kind::integers, -16777216, 16777216};
  for (std::uint64_t index = 0; index < 1000; ++index) {
    const double value = input_value(all, DType::i32, 7, 8, index);
    EXPECT_EQ(value, std::floor(value));
    EXPECT_LT(std::fabs(value), 16777217);
  }
}

TEST(InputValue, ChoicesAreEquallyOften) {
  for (const int size : {1, 2, 3, 7, 16}) {
    Distribution distribution{Distribution::Kind::choice};
    for (int i = 0; i < size; ++i) distribution.choices.push_back(i - 0.5);
    std::map<double, int> counts;
    for (std::uint64_t index = 0; index < 16'000; ++index) {
      ++counts[input_value(distribution, DType::f32, 7, 8, index)];
    }
    ASSERT_EQ(counts.size(), static_cast<std::size_t>(size));
    for (const auto& [value, count] : counts) EXPECT_NEAR(count, 16'000 / size, 250) << value;
  }
}

TEST(InputValue, ConditionsAreZeroOrOne) {
  Distribution coin{Distribution::Kind::choice};
  coin.choices = {0, 1, 1, 1};
  double ones = 0;
  for (std::uint64_t index = 0; index < 10'000; ++index) {
    const double value = input_value(coin, DType::boolean, 7, 8, index);
    EXPECT_TRUE(value == 0 || value == 1);
    ones += value;
  }
  EXPECT_NEAR(ones, 7'500, 250);
}

constexpr int sample_size = 1 << 20;

std::vector<double> sample(const Distribution& distribution, std::uint64_t seed,
                           std::uint32_t stream) {
  std::vector<double> values(sample_size);
  for (int i = 0; i < sample_size; ++i) {
    values[i] = input_value(distribution, DType::f32, seed, stream, i);
  }
  return values;
}

double mean_of_power(const std::vector<double>& values, double centre, int power) {
  double sum = 0.0;
  for (const double value : values) sum += std::pow(value - centre, power);
  return sum / static_cast<double>(values.size());
}

// Bounds are five standard errors of the statistic for a true normal (or uniform) sample.
TEST(InputValue, NormalMomentsAndTails) {
  const std::vector<double> values = sample(standard_normal, 2025, 1);
  const double standard_error = 1.0 / std::sqrt(sample_size);
  EXPECT_NEAR(mean_of_power(values, 0.0, 1), 0.0, 5 * standard_error);
  EXPECT_NEAR(mean_of_power(values, 0.0, 2), 1.0, 5 * std::sqrt(2.0) * standard_error);
  EXPECT_NEAR(mean_of_power(values, 0.0, 3), 0.0, 5 * std::sqrt(15.0) * standard_error);
  EXPECT_NEAR(mean_of_power(values, 0.0, 4), 3.0, 5 * std::sqrt(96.0) * standard_error);
  for (const double threshold : {0.5, 1.0, 2.0, 3.0, 4.0}) {
    const double expected = sample_size * 0.5 * std::erfc(threshold / std::sqrt(2.0));
    double above = 0.0;
    double below = 0.0;
    for (const double value : values) {
      above += value > threshold;
      below += value < -threshold;
    }
    EXPECT_NEAR(above, expected, 5 * std::sqrt(expected)) << threshold;
    EXPECT_NEAR(below, expected, 5 * std::sqrt(expected)) << threshold;
  }
}

TEST(InputValue, UniformMoments) {
  const std::vector<double> values = sample(uniform, 2025, 1);
  const double width = 1.75;
  const double standard_error = 1.0 / std::sqrt(sample_size);
  const double variance = width * width / 12.0;
  EXPECT_NEAR(mean_of_power(values, 0.0, 1), 0.625, 5 * std::sqrt(variance) * standard_error);
  EXPECT_NEAR(mean_of_power(values, 0.625, 2), variance, 5 * variance * standard_error);
}

double correlation(const std::vector<double>& x, const std::vector<double>& y, int lag) {
  double sum = 0.0;
  for (int i = 0; i + lag < sample_size; ++i) sum += x[i] * y[i + lag];
  return sum / (sample_size - lag);
}

TEST(InputValue, TensorsSeedsAndNeighboursAreIndependent) {
  const double bound = 5.0 / std::sqrt(sample_size);
  const std::vector<double> base = sample(standard_normal, 1, tensor_stream("a"));
  const std::vector<double> other_tensor = sample(standard_normal, 1, tensor_stream("b"));
  const std::vector<double> other_seed = sample(standard_normal, 2, tensor_stream("a"));
  for (const int lag : {1, 2, 3, 4, 5, 4096}) {
    EXPECT_LE(std::fabs(correlation(base, base, lag)), bound) << "lag " << lag;
  }
  for (const int lag : {0, 1, 4}) {
    EXPECT_LE(std::fabs(correlation(base, other_tensor, lag)), bound) << "lag " << lag;
    EXPECT_LE(std::fabs(correlation(base, other_seed, lag)), bound) << "lag " << lag;
  }
}

TEST(TensorStream, DiffersBetweenTheCatalogsNames) {
  const std::set<std::uint32_t> streams = {
      tensor_stream("a"),     tensor_stream("b"),      tensor_stream("x"),
      tensor_stream("input"), tensor_stream("weight"), tensor_stream("bias"),
      tensor_stream("q"),     tensor_stream("k"),      tensor_stream("v")};
  EXPECT_EQ(streams.size(), 9u);
  EXPECT_EQ(tensor_stream("a"), 0xe40c292cu);  // FNV-1a's published value
}

Tensor input_tensor(const std::string& name, DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  return tensor;
}

TEST(HostInputs, AreInputValuesByIndex) {
  Problem problem;
  problem.tensors = {input_tensor("x", DType::f32, {2, 60}), input_tensor("bias", DType::f32, {60}),
                     input_tensor("half", DType::f16, {8})};
  const HostInputs inputs = host_inputs(problem, 77);
  ASSERT_EQ(inputs.size(), 3u);
  ASSERT_EQ(inputs.at("x").size(), 120u);
  for (const std::uint64_t index : {0, 1, 59}) {
    EXPECT_EQ(inputs.at("bias")[index],
              input_value(standard_normal, DType::f32, 77, tensor_stream("bias"), index));
  }
  for (const double value : inputs.at("half")) {
    EXPECT_EQ(value, rounded_to(DType::f16, value));
  }
}

TEST(HostInputs, AreAsTheProblemMakesThem) {
  Problem problem;
  problem.tensors = {input_tensor("x", DType::f32, {4})};
  problem.made = [](const HostInputs& drawn) {
    HostInputs made = drawn;
    made.at("x")[2] = 17;
    return made;
  };
  const HostInputs inputs = host_inputs(problem, 77);
  EXPECT_EQ(inputs.at("x")[2], 17);
  EXPECT_EQ(inputs.at("x")[1], input_value(standard_normal, DType::f32, 77, tensor_stream("x"), 1));
}

}  // namespace
}  // namespace rekernel

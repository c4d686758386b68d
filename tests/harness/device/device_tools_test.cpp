#include "harness/device/device_tools.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "harness/candidate/arch.h"
#include "ops/inputs.h"
#include "tests/harness/device/device_fixture.h"

namespace rekernel {
namespace {

constexpr DType drawn_types[] = {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2,
                                 DType::i8,  DType::i32, DType::i64,  DType::boolean};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(NvrtcDeviceTools, CompileForEveryTarget) {
  const Result<Compiler> compiler = Compiler::load();
  ASSERT_TRUE(compiler) << compiler.error().message;
  for (const std::string& target : targets_of("sm_80")) {
    if (!compiler->knows(target)) continue;
    const Result<CompiledProgram> compiled = compiler->compile(device_tools_program(), "", target);
    ASSERT_TRUE(compiled) << target << ": " << compiled.error().message;
    for (const KernelResources& kernel : compiled->kernels) {
      // For sm_100a and sm_103a, ptxas 13.0 spills at the 32 registers of the input kernels' launch
      // bounds.
      const bool may_spill = target.starts_with("sm_10");
      EXPECT_TRUE(may_spill || kernel.spill_store_bytes == 0) << target << " " << kernel.name;
      EXPECT_EQ(kernel.stack_bytes, may_spill ? kernel.stack_bytes : 0)
          << target << " " << kernel.name;
    }
  }
}

class GpuDeviceTools : public DeviceFixture {
 protected:
  static constexpr std::uint64_t seed = 0x123456789abcdef0;

  void expect_host_values(DType dtype, const Distribution& distribution, std::int64_t count) {
    SCOPED_TRACE(std::string(to_string(dtype)) + " " + to_string(distribution.kind) + " " +
                 std::to_string(count));
    // One element more than is to be filled: it must stay as it was.
    const DeviceBuffer buffer((count + 1) * size_in_bytes(dtype));
    REKERNEL_CUDA(cuMemsetD8Async(buffer.get(), 0x5a, static_cast<std::size_t>(buffer.bytes()),
                                  stream->get()));
    const BufferView filled{buffer.get(), count * size_in_bytes(dtype)};
    tools->fill(filled, dtype, distribution, seed, 77, *stream);
    EXPECT_EQ(tools->count_input_mismatches(filled, dtype, distribution, seed, 77, *stream), 0);
    const std::vector<std::uint64_t> found = downloaded(view(buffer), dtype);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double expected =
          input_value(distribution, dtype, seed, 77, static_cast<std::uint64_t>(i));
      ASSERT_EQ(found[at], stored_bits(dtype, expected)) << i << ": " << expected;
    }
    EXPECT_EQ(found.back(), 0x5a5a5a5a5a5a5a5aull >> (64 - 8 * size_in_bytes(dtype)));
  }

  ErrorStats compared(const std::vector<double>& output, DType dtype,
                      const std::vector<double>& truth, Comparison comparison, double scale = 1) {
    Tensor tensor;
    tensor.dtype = dtype;
    tensor.comparison = comparison;
    const DeviceBuffer written = uploaded(output, dtype);
    const DeviceBuffer expected = uploaded(truth, DType::f64);
    return tools->compare(view(written), tensor, view(expected), {1e-2, 1e-2, 1, 1}, scale,
                          *stream);
  }
};

TEST_F(GpuDeviceTools, InputsEqualTheHostsBitForBit) {
  Distribution choice{Distribution::Kind::choice};
  choice.choices = {0.5, -1.5, 3, 100};
  const Distribution reals[] = {{Distribution::Kind::normal, 0.0, 1.0},
                                {Distribution::Kind::normal, 1000.0, 0.1},
                                {Distribution::Kind::normal, 0.0, 1e-5},
                                {Distribution::Kind::normal, 0.0, 1e6},
                                {Distribution::Kind::uniform, -0.0525, 0.0525},
                                {Distribution::Kind::constant, 0.1},
                                {Distribution::Kind::integers, -20, 31},
                                choice,
                                {.odd_row = Distribution::OddRow{7, 11, 3.0, 0.5}},
                                {.odd_row = Distribution::OddRow{1, 64, 0.0, 0.0},
                                 .outliers = Distribution::Outliers{16, 200.0}}};
  Distribution integer_choice{Distribution::Kind::choice};
  for (int i = 0; i < 16; ++i) integer_choice.choices.push_back(8 * i - 64);
  const Distribution integers[] = {{Distribution::Kind::integers, -128, 128},
                                   {Distribution::Kind::constant, -7},
                                   integer_choice};
  Distribution coin{Distribution::Kind::choice};
  coin.choices = {0, 1};
  for (const DType dtype : drawn_types) {
    for (const std::int64_t count : {1, 2, 5, 1003, 20'001}) {
      if (dtype == DType::boolean) {
        expect_host_values(dtype, coin, count);
      } else if (float_format(dtype)) {
        for (const Distribution& distribution : reals) {
          expect_host_values(dtype, distribution, count);
        }
      } else {
        for (const Distribution& distribution : integers) {
          expect_host_values(dtype, distribution, count);
        }
      }
    }
    // More than one element a thread.
    const Distribution one = float_format(dtype) ? reals[0] : coin;
    expect_host_values(dtype, one, 3'000'001);
  }
}

TEST_F(GpuDeviceTools, EveryChangedElementIsCounted) {
  constexpr std::int64_t count = 10'007;
  for (const DType dtype : drawn_types) {
    const Distribution zero{Distribution::Kind::constant, 0};
    std::vector<double> values(count, 0.0);
    for (const std::size_t index : {0, 1, 5000, 10'006}) values[index] = 1.0;
    const DeviceBuffer buffer = uploaded(values, dtype);
    EXPECT_EQ(tools->count_input_mismatches(view(buffer), dtype, zero, 5, 6, *stream), 4)
        << to_string(dtype);
  }
}

TEST_F(GpuDeviceTools, ErrorsAreThoseOfTheStoredValues) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    SCOPED_TRACE(to_string(dtype));
    std::vector<double> truth(1000, 2.0);
    std::vector<double> output = truth;
    output[700] = 2.5;
    const ErrorStats stats = compared(output, dtype, truth, Comparison::close);
    EXPECT_EQ(stats.failing, 1);
    EXPECT_EQ(stats.unwritten, 0);
    EXPECT_EQ(stats.first_failing, 700);
    EXPECT_EQ(stats.first_value, 2.5);
    EXPECT_EQ(stats.first_truth, 2.0);
    EXPECT_EQ(stats.max_abs, 0.5);
    EXPECT_DOUBLE_EQ(stats.rms, 0.5 / std::sqrt(1000.0));
    EXPECT_DOUBLE_EQ(stats.truth_rms, 2.0);
    EXPECT_DOUBLE_EQ(stats.worst_tolerance_ratio, 0.5 / (1e-2 + 2e-2));
    EXPECT_DOUBLE_EQ(stats.worst_strict_ratio, 0.5 / (1e-4 + 2e-4));
  }
}

TEST_F(GpuDeviceTools, AnInfiniteTruthIsMetExactlyAndANanByNothing) {
  const ErrorStats met =
      compared({infinity, -infinity, 1}, DType::f32, {infinity, -infinity, 1}, Comparison::close);
  EXPECT_EQ(met.failing, 0);
  EXPECT_EQ(met.max_abs, 0);
  EXPECT_EQ(met.worst_tolerance_ratio, 0);
  EXPECT_DOUBLE_EQ(met.truth_rms, std::sqrt(1.0 / 3)) << "of what is finite";
  const ErrorStats missed = compared({-infinity, 1e38, nan, infinity}, DType::f32,
                                     {infinity, infinity, infinity, 1}, Comparison::close);
  EXPECT_EQ(missed.failing, 4);
  EXPECT_EQ(missed.max_abs, infinity);
  EXPECT_EQ(missed.worst_tolerance_ratio, infinity);
  EXPECT_EQ(compared({nan, 0, infinity}, DType::f32, {nan, nan, nan}, Comparison::close).failing,
            3);
}

TEST_F(GpuDeviceTools, ATruthOfZerosIsMetByZerosWhereItIsScaled) {
  EXPECT_EQ(compared({0, 0}, DType::f32, {0, 0}, Comparison::close, 0).failing, 0);
  EXPECT_EQ(compared({0, 1e-30}, DType::f32, {0, 0}, Comparison::close, 0).failing, 1);
}

TEST_F(GpuDeviceTools, IntegersAndConditionsAreEqualOrWrong) {
  for (const DType dtype : {DType::i8, DType::i32, DType::i64}) {
    SCOPED_TRACE(to_string(dtype));
    const ErrorStats stats = compared({-1, 100, 127}, dtype, {-1, 101, 127}, Comparison::equal);
    EXPECT_EQ(stats.failing, 1);
    EXPECT_EQ(stats.first_failing, 1);
    EXPECT_EQ(stats.first_value, 100);
    EXPECT_EQ(stats.unwritten, 0) << "what is right was written, whatever its pattern";
    EXPECT_EQ(stats.worst_tolerance_ratio, infinity);
  }
  EXPECT_EQ(compared({0, 1}, DType::boolean, {0, 1}, Comparison::equal).failing, 0);
  EXPECT_EQ(compared({1, 1}, DType::boolean, {0, 1}, Comparison::equal).failing, 1);
}

TEST_F(GpuDeviceTools, OfIndicesOfExtremesOnlyWrittenOnesCount) {
  for (const DType dtype : {DType::i32, DType::i64}) {
    EXPECT_EQ(compared({3, 4}, dtype, {5, 6}, Comparison::extreme).failing, 0);
    const ErrorStats unwritten = compared({3, -1}, dtype, {5, 6}, Comparison::extreme);
    EXPECT_EQ(unwritten.failing, 1);
    EXPECT_EQ(unwritten.unwritten, 1);
    EXPECT_EQ(unwritten.first_failing, 1);
  }
}

TEST_F(GpuDeviceTools, WhatHoldsThePoisonWasNotWritten) {
  for (const DType dtype : drawn_types) {
    for (const std::uint8_t byte : {poison_byte, other_poison_byte}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::to_string(byte));
      constexpr std::int64_t count = 333;
      Tensor tensor;
      tensor.dtype = dtype;
      tensor.comparison = float_format(dtype) ? Comparison::close : Comparison::equal;
      const DeviceBuffer output(count * size_in_bytes(dtype));
      REKERNEL_CUDA(cuMemsetD8Async(output.get(), byte, static_cast<std::size_t>(output.bytes()),
                                    stream->get()));
      const DeviceBuffer truth = uploaded(std::vector<double>(count, 1.0), DType::f64);
      const ErrorStats stats =
          tools->compare(view(output), tensor, view(truth), {1e-2, 1e-2, 1, 1}, 1, *stream);
      EXPECT_EQ(stats.failing, count);
      EXPECT_EQ(stats.unwritten, count);
    }
  }
}

TEST_F(GpuDeviceTools, DigestsTellEveryByteApart) {
  for (const int bytes : {1, 2, 3, 64, 1001}) {
    std::vector<double> content(static_cast<std::size_t>(bytes), 7);
    const DeviceBuffer buffer = uploaded(content, DType::u8);
    const std::uint64_t digest = tools->digest(view(buffer), 99, *stream);
    EXPECT_EQ(digest, tools->digest(view(buffer), 99, *stream));
    EXPECT_NE(digest, tools->digest(view(buffer), 98, *stream));
    for (const int changed : {0, bytes / 2, bytes - 1}) {
      std::vector<double> other = content;
      other[static_cast<std::size_t>(changed)] = 8;
      EXPECT_NE(digest, tools->digest(view(uploaded(other, DType::u8)), 99, *stream)) << changed;
    }
  }
}

TEST_F(GpuDeviceTools, CopiesOfAnySizeAreWhole) {
  for (const int bytes : {1, 4, 15, 16, 17, 31, 4096, 1'000'003}) {
    std::vector<double> content;
    for (int i = 0; i < bytes; ++i) content.push_back(i % 251);
    const DeviceBuffer from = uploaded(content, DType::u8);
    const DeviceBuffer to = uploaded(std::vector<double>(content.size() + 8, 255), DType::u8);
    tools->copy({to.get(), bytes}, view(from), *stream);
    stream->synchronize();
    std::vector<double> found = values(view(to), DType::u8);
    for (std::size_t i = content.size(); i < found.size(); ++i) EXPECT_EQ(found[i], 255);
    found.resize(content.size());
    EXPECT_EQ(found, content) << bytes;
  }
}

}  // namespace
}  // namespace rekernel

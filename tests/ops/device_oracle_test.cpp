// The problems' device code: that it compiles everywhere (NVRTC), and that the GPU agrees with the
// host (GPU).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/compile/compile.h"
#include "harness/device/launch.h"
#include "harness/gpu/cuda.h"
#include "harness/problems/catalog.h"
#include "ops/inputs.h"
#include "ops/operators.h"
#include "ops/oracle.h"

namespace rekernel {
namespace {

void expect_compiles(const Program& program, const std::string& header) {
  const Result<Compiler> compiler = Compiler::load();
  ASSERT_TRUE(compiler.ok()) << compiler.error().message;
  for (const std::string& target : targets_of("sm_80")) {
    if (!compiler->knows(target)) continue;
    const Result<CompiledProgram> compiled = compiler->compile(program, header, target);
    ASSERT_TRUE(compiled.ok()) << target << ": " << compiled.error().message;
    const Result<Ok> launches = check_launches(program, *compiled, target);
    EXPECT_TRUE(launches.ok()) << launches.error().message;
    for (const KernelResources& kernel : compiled->kernels) {
      // For sm_100a and sm_103a, ptxas 13.0 spills: at the 32 registers of the input kernels'
      // launch bounds, and eight bytes round a call of exp() with 200 registers to spare.
      const bool may_spill = target.starts_with("sm_10");
      EXPECT_TRUE(may_spill || kernel.spill_store_bytes == 0) << target << " " << kernel.name;
      EXPECT_LE(kernel.static_shared_bytes, 48 * 1024) << target << " " << kernel.name;
    }
  }
}

TEST(NvrtcOracle, EveryOracleCompiles) {
  for (const Problem& problem : catalog()) {
    SCOPED_TRACE(problem.id);
    expect_compiles(problem.device_oracle, problem_header(problem));
  }
}

TEST(NvrtcOracle, EveryInvariantCompiles) {
  for (const Problem& problem : catalog()) {
    for (const Invariant& invariant : problem.invariants) {
      SCOPED_TRACE(problem.id + ": " + invariant.name);
      expect_compiles(invariant.program, problem_header(problem));
    }
  }
}

// A plan with one launch of an input kernel; `counter` for the verifying ones.
Program input_program(const std::string& kernel, std::int64_t count, std::uint64_t seed,
                      const Distribution& distribution, std::int64_t blocks, std::int64_t threads) {
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.grid[0].count = blocks;
  launch.block[0] = threads;
  const random::Parameters p = input_parameters(distribution, seed, tensor_stream("data"));
  launch.args = {BufferArgument{"data"},
                 ScalarArgument{static_cast<std::uint64_t>(count)},
                 ScalarArgument{seed},
                 ScalarArgument{tensor_stream("data")},
                 ScalarArgument{p.kind},
                 ScalarArgument{p.a},
                 ScalarArgument{p.b},
                 ScalarArgument{p.row_a},
                 ScalarArgument{p.row_b},
                 ScalarArgument{static_cast<std::uint64_t>(p.row_begin)},
                 ScalarArgument{static_cast<std::uint64_t>(p.row_end)},
                 ScalarArgument{p.stretch_bits},
                 ScalarArgument{p.has_outliers},
                 ScalarArgument{p.outlier},
                 ScalarArgument{p.key}};
  if (kernel.starts_with("verify")) launch.args.push_back(BufferArgument{"counter"});
  Program program;
  program.source = input_device_source();
  program.steps = {launch};
  return program;
}

TEST(NvrtcOracle, InputKernelsCompile) {
  for (const char* kernel : {"fill_f16", "fill_f32", "verify_f16", "verify_f32"}) {
    expect_compiles(input_program(kernel, 1, 0, {}, 1, 32), "");
  }
}

class GpuOracle : public testing::Test {
 protected:
  void SetUp() override {
    Result<Device> opened = Device::open();
    if (!opened) GTEST_SKIP() << opened.error().message;
    device_ = std::move(*opened);
    stream_.emplace();
  }

  /// A new buffer that holds `values` rounded to `dtype`.
  void upload(const std::string& name, const std::vector<double>& values, DType dtype) {
    std::vector<std::uint16_t> halves;
    std::vector<float> singles;
    for (const double value : values) {
      if (dtype == DType::f16) {
        halves.push_back(to_half_bits(value));
      } else {
        singles.push_back(static_cast<float>(value));
      }
    }
    const void* data = dtype == DType::f16 ? static_cast<const void*>(halves.data())
                                           : static_cast<const void*>(singles.data());
    allocate(name, static_cast<std::int64_t>(values.size()) * size_in_bytes(dtype));
    REKERNEL_CUDA(cuMemcpyHtoD(bindings_[name].pointer, data,
                               static_cast<std::size_t>(bindings_[name].bytes)));
  }

  /// A new buffer full of NaN patterns.
  void allocate(const std::string& name, std::int64_t bytes) {
    buffers_[name] = DeviceBuffer(bytes);
    bindings_[name] = {buffers_[name].get(), bytes};
    REKERNEL_CUDA(cuMemsetD8Async(bindings_[name].pointer, 0xff, static_cast<std::size_t>(bytes),
                                  stream_->get()));
    stream_->synchronize();
  }

  template <class T>
  std::vector<T> download(const std::string& name) {
    std::vector<T> values(static_cast<std::size_t>(bindings_[name].bytes) / sizeof(T));
    REKERNEL_CUDA(cuMemcpyDtoH(values.data(), bindings_[name].pointer, values.size() * sizeof(T)));
    return values;
  }

  void run(const Program& program, const std::string& header) {
    const Result<Compiler> compiler = Compiler::load();
    ASSERT_TRUE(compiler.ok()) << compiler.error().message;
    const DeviceProperties& properties = device_->properties();
    const Result<CompiledProgram> compiled = compiler->compile(
        program, header, Compiler::target_for_device(properties.major, properties.minor));
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    for (const Workspace& workspace : program.workspaces) {
      allocate(workspace.name, workspace.bytes);
    }
    const Result<std::unique_ptr<Runnable>> runnable =
        make_runnable(program, *compiled, bindings_, properties);
    ASSERT_TRUE(runnable.ok()) << runnable.error().message;
    (*runnable)->enqueue(stream_->get());
    stream_->synchronize();
  }

  std::optional<Device> device_;
  std::optional<Stream> stream_;
  std::map<std::string, DeviceBuffer> buffers_;
  Bindings bindings_;
};

// Small instances, with extents that are no multiples of any tile and with several chunks of heads.
std::vector<Problem> small_problems() {
  const ConvolutionSizes padded{.batch = 3,
                                .in_channels = 3,
                                .height = 45,
                                .width = 38,
                                .filters = 13,
                                .kernel = 11,
                                .stride = 4,
                                .padding = 2};
  const ConvolutionSizes many_filters{.batch = 2,
                                      .in_channels = 5,
                                      .height = 19,
                                      .width = 23,
                                      .filters = 131,
                                      .kernel = 3,
                                      .stride = 2,
                                      .padding = 1};
  const AttentionSizes attention{.batch = 1, .heads = 3, .length = 203, .head_dim = 40};
  const std::int64_t two_heads = 2'000'000;  // 256 x (256 + 48 + 48 + 64) float64 each
  // As the stress inputs have it.
  Problem large_scores = make_attention_fp16(attention, two_heads);
  large_scores.tensors.front().distribution = {Distribution::Kind::normal, 0.0, 30.0};
  return {make_matmul_fp32(1, 1, 1),
          make_matmul_fp32(128, 64, 16),
          make_matmul_fp32(130, 67, 33),
          make_matmul_fp32(257, 190, 301),
          make_conv2d(padded),
          make_conv2d(many_filters),
          make_softmax(1, 1),
          make_softmax(7, 31),
          make_softmax(5, 4099),
          make_layernorm(1, 1, 1, 3),
          make_layernorm(3, 5, 31, 47),
          make_conv2d_relu_maxpool(padded),
          make_conv2d_relu_maxpool(many_filters),
          make_matmul_fp16(64, 128, 64),
          make_matmul_fp16(129, 66, 65),
          make_attention_fp16(attention, two_heads),
          large_scores,
          make_attention_fp16({.batch = 2, .heads = 1, .length = 128, .head_dim = 64}),
          make_attention_fp16_causal(attention, two_heads),
          make_attention_fp16_causal({.batch = 2, .heads = 1, .length = 128, .head_dim = 64})};
}

TEST_F(GpuOracle, AgreesWithTheHostOracle) {
  for (const Problem& problem : small_problems()) {
    SCOPED_TRACE(problem_header(problem));
    const HostInputs inputs = host_inputs(problem, 21);
    for (const Tensor& tensor : problem.tensors) {
      if (tensor.role == Role::input) upload(tensor.name, inputs.at(tensor.name), tensor.dtype);
    }
    allocate("truth", problem.output().elements() * size_in_bytes(DType::f64));
    run(problem.device_oracle, problem_header(problem));

    const std::vector<double> expected = problem.host_oracle(problem, inputs);
    const std::vector<double> truth = download<double>("truth");
    ASSERT_EQ(truth.size(), expected.size());
    double squares = 0.0;
    for (const double value : expected) squares += value * value;
    // Relative to the rms: single elements can be small by cancellation.
    const double rms = std::sqrt(squares / static_cast<double>(expected.size()));
    for (std::size_t i = 0; i < truth.size(); ++i) {
      ASSERT_LE(std::fabs(truth[i] - expected[i]), 1e-12 * (rms + std::fabs(expected[i])))
          << "element " << i << ": " << truth[i] << ", expected " << expected[i];
    }
  }
}

TEST_F(GpuOracle, InputsEqualTheHostsBitForBit) {
  const Distribution distributions[] = {{Distribution::Kind::normal, 0.0, 1.0},
                                        {Distribution::Kind::normal, 1000.0, 0.1},
                                        {Distribution::Kind::uniform, -0.0525, 0.0525},
                                        {Distribution::Kind::constant, 0.1},
                                        {.odd_row = Distribution::OddRow{7, 11, 3.0, 0.5}},
                                        {.odd_row = Distribution::OddRow{1, 64, 0.0, 0.0},
                                         .outliers = Distribution::Outliers{16, 200.0}}};
  const std::uint64_t seed = 0x123456789abcdef0;
  for (const DType dtype : {DType::f16, DType::f32}) {
    for (const Distribution& distribution : distributions) {
      for (const std::int64_t count : {1, 2, 5, 1003, 200'001}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::to_string(count));
        std::vector<double> expected;
        for (std::int64_t i = 0; i < count; ++i) {
          expected.push_back(input_value(distribution, dtype, seed, tensor_stream("data"), i));
        }
        // One element more than is to be filled: it must stay as it was.
        allocate("data", (count + 1) * size_in_bytes(dtype));
        run(input_program(std::string("fill_") + to_string(dtype), count, seed, distribution, 3,
                          96),
            "");
        const auto expect_bits = [&](const auto& found, const auto& to_bits) {
          for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(found[i], to_bits(expected[i])) << i;
          using Bits = typename std::decay_t<decltype(found)>::value_type;
          EXPECT_EQ(found[count], std::numeric_limits<Bits>::max());
        };
        if (dtype == DType::f16) {
          expect_bits(download<std::uint16_t>("data"), to_half_bits);
        } else {
          expect_bits(download<std::uint32_t>("data"), [](double value) {
            return std::bit_cast<std::uint32_t>(static_cast<float>(value));
          });
        }
      }
    }
  }
}

TEST_F(GpuOracle, VerifyCountsEveryChangedElement) {
  const std::int64_t count = 10'007;
  for (const DType dtype : {DType::f16, DType::f32}) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(input_value({}, dtype, 5, tensor_stream("data"), i));
    }
    const auto mismatches = [&] {
      upload("data", values, dtype);
      allocate("counter", sizeof(std::uint64_t));
      REKERNEL_CUDA(
          cuMemsetD8Async(bindings_["counter"].pointer, 0, sizeof(std::uint64_t), stream_->get()));
      run(input_program(std::string("verify_") + to_string(dtype), count, 5, {}, 7, 128), "");
      return download<std::uint64_t>("counter")[0];
    };
    EXPECT_EQ(mismatches(), 0u);
    for (const std::int64_t index : {0, 1, 5000, 10'006}) values[index] += 1.0;
    EXPECT_EQ(mismatches(), 4u);
  }
}

TEST_F(GpuOracle, SoftmaxInvariantMeasuresTheWorstRow) {
  const Problem problem = make_softmax(37, 501);
  ASSERT_EQ(problem.invariants.size(), 1u);
  std::vector<double> y(37 * 501, 1.0 / 501);
  const auto violation = [&] {
    upload("y", y, DType::f32);
    allocate("violation", sizeof(double));
    run(problem.invariants[0].program, problem_header(problem));
    return download<double>("violation")[0];
  };
  EXPECT_LE(violation(), 1e-6);
  y[36 * 501 + 500] += 0.25;
  EXPECT_NEAR(violation(), 0.25, 1e-6);
  y[501] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(violation() <= problem.invariants[0].bound);
}

TEST_F(GpuOracle, RowErrorsAreRelativeToTheirRow) {
  const Tensor output{"o", DType::f16, {3, 41, 128}, Role::output};
  const Invariant invariant = row_error_invariant(output, 1e-2);
  std::vector<double> truth(3 * 41 * 128, 4.0);
  std::fill(truth.end() - 128, truth.end(), 0.25);
  std::fill(truth.begin(), truth.begin() + 128, 0.0);
  std::vector<double> o = truth;
  const auto violation = [&] {
    upload("o", o, DType::f16);
    allocate("truth", output.elements() * size_in_bytes(DType::f64));
    REKERNEL_CUDA(
        cuMemcpyHtoD(bindings_["truth"].pointer, truth.data(), truth.size() * sizeof(double)));
    allocate("violation", sizeof(double));
    run(invariant.program, "");
    return download<double>("violation")[0];
  };
  EXPECT_EQ(violation(), 0.0);
  o[128] = 4.5;  // 0.5 of a row of norm 4·√128
  EXPECT_NEAR(violation(), 0.5 / 4.0 / std::sqrt(128.0), 1e-12);
  o.back() = 0.5;  // 0.25 of a row of norm 0.25·√128
  EXPECT_NEAR(violation(), 1.0 / std::sqrt(128.0), 1e-12);
  o[5] = 1.0;  // in a row of zeros
  EXPECT_FALSE(violation() <= invariant.bound);
  o[5] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(violation() <= invariant.bound);
}

}  // namespace
}  // namespace rekernel

// Every problem at small sizes, from its inputs to a judgement of what its scaffold wrote: the
// device code that is made of definitions, and all that the referee does with it.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/device/buffers.h"
#include "harness/evaluation/check.h"
#include "harness/problems/small_instance.h"
#include "ops/inputs.h"
#include "tests/harness/device/device_fixture.h"
#include "tests/problems.h"

namespace rekernel {
namespace {

/// A problem on the device, with the subject that computes it.
class Bench {
 public:
  using Compile = std::function<CompiledProgram(const Program&, const std::string&)>;

  Bench(const Problem& problem, const DeviceTools& tools, const DeviceProperties& device,
        const Stream& stream, const Compile& compile)
      : problem_(problem),
        tools_(tools),
        stream_(stream),
        making_(problem.making.steps.empty() ? CompiledProgram{}
                                             : compile(problem.making, problem_header(problem))),
        made_{making_, device},
        oracle_(compile(problem.device_oracle, problem_header(problem))),
        inputs(problem, tools, Surroundings::hole, &made_),
        subject(problem, problem.scaffold.workspaces, Surroundings::hole),
        checker(problem, inputs, tools, {&oracle_, nullptr}, invariants(compile), device, stream) {
    Bindings bindings = inputs.bindings();
    bindings.insert(subject.bindings().begin(), subject.bindings().end());
    Result<std::unique_ptr<Runnable>> made = make_runnable(
        problem.scaffold, compile(problem.scaffold, problem_header(problem)), bindings, device);
    if (!made) throw std::runtime_error(made.error().message);
    scaffold_ = std::move(*made);
  }

  void run(std::uint64_t seed, const StressCase* stress) {
    inputs.fill(seed, stress, stream_);
    subject.poison(seed % 2 == 0 ? poison_byte : other_poison_byte, stream_);
    subject.draw_guards(0x75, stream_);
    scaffold_->enqueue(stream_.get());
    snapshot();
  }

  void snapshot() {
    for (const auto& [name, output] : subject.outputs()) {
      tools_.copy(checker.snapshots().at(name), output, stream_);
    }
    stream_.synchronize();
  }

 private:
  std::vector<CompiledInvariant> invariants(const Compile& compile) const {
    std::vector<CompiledInvariant> all;
    for (const Invariant& one : problem_.invariants) {
      all.push_back({&one, compile(one.program, problem_header(problem_))});
    }
    return all;
  }

  const Problem& problem_;
  const DeviceTools& tools_;
  const Stream& stream_;
  CompiledProgram making_;
  InputBuffers::Making made_;
  CompiledProgram oracle_;
  std::unique_ptr<Runnable> scaffold_;

 public:
  InputBuffers inputs;
  SubjectBuffers subject;
  Checker checker;
};

class GpuSmallInstance : public DeviceFixture, public testing::WithParamInterface<std::string> {
 protected:
  std::unique_ptr<Bench> bench(const Problem& problem) {
    return std::make_unique<Bench>(problem, *tools, properties(), *stream,
                                   [this](const Program& program, const std::string& header) {
                                     return compiled(program, header);
                                   });
  }

  /// What the device makes of seeds is what the host makes of them.
  void expect_equal_inputs(const Problem& problem, const Bench& with, const HostInputs& expected) {
    for (const Tensor* tensor : problem.inputs()) {
      const std::vector<double> found =
          values(with.inputs.bindings().at(tensor->name), tensor->dtype);
      ASSERT_EQ(found, expected.at(tensor->name)) << tensor->name;
    }
  }

  void expect_equal_truths(const Problem& problem, const Bench& with, const HostInputs& inputs) {
    Bindings bindings = with.inputs.bindings();
    std::map<std::string, DeviceBuffer> truths;
    for (const Tensor* output : problem.outputs()) {
      const std::string name = truth_buffer(output->name);
      truths[name] = DeviceBuffer(output->elements() * size_in_bytes(DType::f64));
      bindings[name] = view(truths[name]);
    }
    const OwnProgram oracle(problem.device_oracle,
                            compiled(problem.device_oracle, problem_header(problem)), bindings,
                            properties());
    oracle.enqueue(*stream);
    stream->synchronize();
    const HostInputs expected = problem.host_oracle(inputs);
    for (const Tensor* output : problem.outputs()) {
      const std::vector<double> found = values(bindings.at(truth_buffer(output->name)), DType::f64);
      expect_close(found, expected.at(output->name), output->name);
    }
  }

  /// Relative to the rms, too: single elements can be small by cancellation.
  static void expect_close(const std::vector<double>& found, const std::vector<double>& expected,
                           const std::string& name) {
    ASSERT_EQ(found.size(), expected.size());
    double squares = 0;
    for (const double value : expected) squares += std::isfinite(value) ? value * value : 0;
    const double rms = std::sqrt(squares / static_cast<double>(expected.size()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] == expected[i]) continue;
      ASSERT_LE(std::fabs(found[i] - expected[i]), 1e-12 * (rms + std::fabs(expected[i])))
          << name << "[" << i << "]";
    }
  }
};

TEST_P(GpuSmallInstance, TheScaffoldPasses) {
  const Problem* whole = find_problem(GetParam());
  const Result<Problem> small = small_instance(*whole);
  if (!small) GTEST_SKIP() << small.error().message;
  SCOPED_TRACE(problem_header(*small));
  const std::unique_ptr<Bench> with = bench(*small);
  const HostInputs inputs = host_inputs(*small, 21);
  with->run(21, nullptr);
  expect_equal_inputs(*small, *with, inputs);
  EXPECT_EQ(with->inputs.find_modified(21, nullptr, *stream), std::nullopt);
  expect_equal_truths(*small, *with, inputs);
  const Judgement own = with->checker.judge(with->subject, nullptr);
  EXPECT_FALSE(own.rejection) << own.rejection->message;
  EXPECT_EQ(own.stats->unwritten, 0);
  for (const StressCase& stress : small->stress_cases) {
    with->run(22, &stress);
    const Judgement judgement = with->checker.judge(with->subject, &stress);
    EXPECT_FALSE(judgement.rejection) << stress.name << ": " << judgement.rejection->message;
  }
}

TEST_P(GpuSmallInstance, NothingPassesThatWasNotWritten) {
  const Result<Problem> small = small_instance(*find_problem(GetParam()));
  if (!small) GTEST_SKIP() << small.error().message;
  const std::unique_ptr<Bench> with = bench(*small);
  for (const Tensor* output : small->outputs()) {
    with->run(31, nullptr);
    const BufferView view = with->subject.outputs().at(output->name);
    REKERNEL_CUDA(cuMemsetD8Async(view.pointer, other_poison_byte,
                                  static_cast<std::size_t>(view.bytes), stream->get()));
    const std::uint64_t right = with->checker.digest();
    with->snapshot();
    EXPECT_NE(with->checker.digest(), right) << output->name;
    const Judgement judgement = with->checker.judge(with->subject, nullptr);
    ASSERT_TRUE(judgement.rejection) << output->name;
    EXPECT_EQ(judgement.rejection->status, Status::wrong_result);
    EXPECT_GT(judgement.stats->unwritten, 0);
    EXPECT_NE(judgement.rejection->message.find(output->name), std::string::npos)
        << judgement.rejection->message;
  }
}

TEST_P(GpuSmallInstance, AChangedInputIsFound) {
  const Result<Problem> small = small_instance(*find_problem(GetParam()));
  if (!small) GTEST_SKIP() << small.error().message;
  const std::unique_ptr<Bench> with = bench(*small);
  for (const Tensor* input : small->inputs()) {
    with->inputs.fill(41, nullptr, *stream);
    EXPECT_EQ(with->inputs.find_modified(41, nullptr, *stream), std::nullopt);
    const BufferView view = with->inputs.bindings().at(input->name);
    std::uint8_t last = 0;
    const CUdeviceptr at = view.pointer + static_cast<CUdeviceptr>(view.bytes - 1);
    REKERNEL_CUDA(cuMemcpyDtoH(&last, at, 1));
    last ^= 1;
    REKERNEL_CUDA(cuMemcpyHtoD(at, &last, 1));
    EXPECT_EQ(with->inputs.find_modified(41, nullptr, *stream), input->name);
  }
}

std::vector<std::string> problem_ids() {
  std::vector<std::string> ids;
  for (const Problem& problem : catalog()) ids.push_back(problem.id);
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuSmallInstance, testing::ValuesIn(problem_ids()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace rekernel

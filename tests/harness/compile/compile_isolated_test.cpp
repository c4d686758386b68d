#include "harness/compile/compile_isolated.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/base/files.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Every test has a cache of its own.
class NvrtcIsolated : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(compiler_.ok()) << compiler_.error().message; }

  CompileOutcome compile(const Program& program, const std::string& header = {},
                         std::chrono::milliseconds deadline = compile_deadline) const {
    Result<CompileOutcome> outcome =
        compile_isolated(*compiler_, program, header, "sm_90a", deadline);
    if (!outcome) throw std::runtime_error(outcome.error().message);
    return *std::move(outcome);
  }

  /// `source`: below tests/, without its suffix.
  CompileOutcome compile_bomb(const std::string& source, const std::string& header = {},
                              std::chrono::milliseconds deadline = compile_deadline) const {
    Program program;
    program.source = *read_file(fs::path(REKERNEL_SOURCE_DIR) / "tests" / (source + ".cu"));
    const auto begin = Clock::now();
    CompileOutcome outcome = compile(program, header, deadline);
    EXPECT_LT(Clock::now() - begin, deadline + 15s);
    EXPECT_FALSE(outcome.program);
    EXPECT_FALSE(fs::exists(cache_ / "cubin")) << "a failure was remembered";
    return outcome;
  }

  Result<Compiler> compiler_ = Compiler::load();
  TemporaryFolder cache_;
  ScopedVariable variable_{"REKERNEL_CACHE", cache_.path().string()};
};

Program harmless() {
  Program program;
  program.source =
      "#include \"problem.h\"\n"
      "extern \"C\" __global__ void NAME(float* x) { x[0] = sinf(x[1]) + problem::rows; }\n";
  program.compile.defines = {{"NAME", "harmless"}};
  program.compile.max_registers = 64;
  program.compile.fast_math = true;
  return program;
}

constexpr const char* three_rows = "namespace problem { inline constexpr int rows = 3; }\n";

TEST_F(NvrtcIsolated, MakesWhatTheCompilerMakesHere) {
  const CompileOutcome outcome = compile(harmless(), three_rows);
  ASSERT_TRUE(outcome.program) << outcome.message;
  const auto here = compiler_->compile_anew(harmless(), three_rows, "sm_90a");
  ASSERT_TRUE(here.ok());
  EXPECT_EQ(outcome.program->cubin, here->cubin);
  EXPECT_EQ(outcome.program->log, here->log);
  ASSERT_TRUE(outcome.program->find("harmless"));
  EXPECT_EQ(outcome.program->find("harmless")->registers, here->find("harmless")->registers);
  EXPECT_GT(outcome.program->compile_ns, 0);
  EXPECT_FALSE(outcome.program->from_cache);
  EXPECT_TRUE(compile(harmless(), three_rows).program->from_cache);
}

TEST_F(NvrtcIsolated, ErrorsCarryTheCompilersLog) {
  Program broken;
  broken.source = "extern \"C\" __global__ void k() { int a = b; }\n";
  const CompileOutcome outcome = compile(broken);
  EXPECT_FALSE(outcome.program);
  EXPECT_EQ(outcome.status, Status::compile_failed);
  EXPECT_NE(outcome.message.find("identifier \"b\" is undefined"), std::string::npos);
}

TEST_F(NvrtcIsolated, OutcomesTravelAsFields) {
  const CompileOutcome good = compile(harmless(), three_rows);
  const auto same = compile_outcome_from(to_fields(good));
  ASSERT_TRUE(same.ok() && same->program);
  EXPECT_EQ(same->program->cubin, good.program->cubin);
  EXPECT_EQ(same->program->log, good.program->log);
  EXPECT_EQ(same->program->kernels.size(), 1u);
  EXPECT_EQ(same->program->compile_ns, good.program->compile_ns);
  const auto late = compile_outcome_from(to_fields(CompileOutcome{{}, Status::timed_out, "late"}));
  ASSERT_TRUE(late.ok());
  EXPECT_FALSE(late->program);
  EXPECT_EQ(late->status, Status::timed_out);
  EXPECT_EQ(late->message, "late");
  const auto failure = compile_outcome_from(to_fields(Error{"no compiler"}));
  ASSERT_FALSE(failure.ok());
  EXPECT_EQ(failure.error().message, "no compiler");
  for (const char* damaged :
       {"", "8:compiled", "8:compiled3:log5:cubin", "3:odd3:why", "9:short", "6:passed2:ok"}) {
    EXPECT_FALSE(compile_outcome_from(damaged).ok()) << damaged;
  }
}

TEST(CompileOutcomes, TextsAreCutAndSpeakToNoTerminal) {
  const auto text_of = [](const std::string& message) {
    return compile_outcome_from(to_fields(CompileOutcome{{}, Status::compile_failed, message}))
        ->message;
  };
  EXPECT_EQ(text_of("a\x1b[31m\xc2\x9b\xff\nb"), "a?[31m??\nb");
  const std::string cut = text_of(std::string(80u << 20, 'x'));
  EXPECT_LT(cut.size(), 100'000u);
  EXPECT_EQ(text_of(cut), cut) << "cut again on its way to the next process";
  EXPECT_EQ(compile_outcome_from(to_fields(Error{"no\x07"})).error().message, "no?");
}

TEST_F(NvrtcIsolated, WarningsAreCutAndTheAssemblersReportIsKept) {
  Program noisy;
  noisy.source = "extern \"C\" __global__ void k(float* x) {\n";
  for (int i = 0; i < 2000; ++i) noisy.source += "  int unused_" + std::to_string(i) + ";\n";
  noisy.source += "  x[0] = 1;\n}\n";
  const CompileOutcome outcome = compile(noisy);
  ASSERT_TRUE(outcome.program) << outcome.message;
  EXPECT_LT(outcome.program->log.size(), 20'000u);
  EXPECT_NE(outcome.program->log.find("unused_0"), std::string::npos);
  EXPECT_NE(outcome.program->log.find("registers"), std::string::npos);
}

TEST_F(NvrtcIsolated, AllModulesShareOneBudget) {
  Program program = harmless();
  program.source = "#include <cooperative_groups.h>\n#include <mma.h>\n#include <cuda/barrier>\n";
  for (int i = 1; i < 32; ++i) {
    program.modules.push_back({Language::cuda, program.source + "// " + std::to_string(i) + "\n"});
  }
  const auto begin = Clock::now();
  const CompileOutcome outcome = compile(program, {}, 6s);
  EXPECT_EQ(outcome.status, Status::timed_out) << outcome.message;
  EXPECT_FALSE(outcome.program);
  EXPECT_LT(Clock::now() - begin, 12s);
}

TEST_F(NvrtcIsolated, ModulesOfTheCacheAreNotCompiledAgain) {
  Program program = harmless();
  program.modules = {{Language::cuda, "extern \"C\" __global__ void one() {}"},
                     {Language::cuda, "extern \"C\" __global__ void two() {}"}};
  Program half = program;
  half.modules = {program.modules[1]};
  ASSERT_TRUE(compile(half, three_rows).program);
  const CompileOutcome outcome = compile(program, three_rows);
  ASSERT_TRUE(outcome.program) << outcome.message;
  ASSERT_EQ(outcome.program->modules.size(), 2u);
  EXPECT_TRUE(outcome.program->from_cache);
  EXPECT_NE(outcome.program->find("harmless"), nullptr);
  EXPECT_NE(outcome.program->find("one", 1), nullptr);
  EXPECT_FALSE(outcome.program->modules[0].from_cache);
  EXPECT_NE(outcome.program->find("two", 2), nullptr);
  EXPECT_TRUE(outcome.program->modules[1].from_cache);
}

TEST_F(NvrtcIsolated, TooMuchSharedMemoryIsToldWithItsLimit) {
  Program program;
  program.source =
      "extern \"C\" __global__ void k(float* x) {\n"
      "  __shared__ float a[200000];\n  a[threadIdx.x] = x[threadIdx.x];\n"
      "  __syncthreads();\n  x[0] = a[199999];\n}\n";
  const CompileOutcome outcome = compile(program);
  EXPECT_EQ(outcome.status, Status::compile_failed);
  EXPECT_NE(
      outcome.message.find("kernel \"k\" has 800000 bytes of static shared memory; expected at "
                           "most 232448"),
      std::string::npos)
      << outcome.message;
}

TEST_F(NvrtcIsolated, MachineCodeThatIsNoneIsAFailure) {
  const auto outcome = compile_outcome_from("8:compiled3:log5:cubin1:7");
  ASSERT_TRUE(outcome.ok());
  EXPECT_FALSE(outcome->program);
  EXPECT_EQ(outcome->status, Status::compile_failed);
}

TEST_F(NvrtcIsolated, LaunchesMustFitWhatWasCompiled) {
  Candidate candidate;
  candidate.problem = "softmax";
  candidate.program = harmless();
  candidate.program.source = "extern \"C\" __global__ void NAME(float* x) { x[0] = 1; }\n";
  KernelLaunch launch;
  launch.kernel = "harmless";
  launch.args = {BufferArgument{"y"}};
  candidate.program.steps = {launch};
  const auto fits = compile_candidate(*compiler_, candidate, "sm_80", "plan");
  ASSERT_TRUE(fits.ok());
  EXPECT_TRUE(fits->program) << fits->message;
  launch.args.clear();
  candidate.program.steps = {launch};
  const auto misses = compile_candidate(*compiler_, candidate, "sm_80", "plan");
  ASSERT_TRUE(misses.ok());
  EXPECT_FALSE(misses->program);
  EXPECT_EQ(misses->status, Status::invalid_plan);
  EXPECT_EQ(misses->message,
            "plan: launches[0].args: kernel \"harmless\" takes 1 arguments, got 0");
}

// --- Compile bombs: each costs only itself -------------------------------------------------------

/// A bomb as the name of its test.
std::string name_of(const std::string& source) {
  const fs::path path(source);
  return (path.stem() == "kernel" ? path.parent_path() : path).stem().string();
}

class NvrtcSlowBomb : public NvrtcIsolated, public testing::WithParamInterface<const char*> {};

TEST_P(NvrtcSlowBomb, MeetsTheCompilersDeadline) {
  const CompileOutcome outcome = compile_bomb(GetParam(), {}, 900ms);
  EXPECT_EQ(outcome.status, Status::timed_out);
  EXPECT_EQ(outcome.message, "not compiled within 0.9 s");
  EXPECT_TRUE(compile(harmless(), three_rows).program);
}

TEST_P(NvrtcSlowBomb, MeetsTheLimitOfProcessorTime) {
  const CompileOutcome outcome = compile_bomb(GetParam(), {}, 6s);
  EXPECT_EQ(outcome.status, Status::timed_out);
  EXPECT_EQ(outcome.message, "not compiled within 2 s of processor time");
  EXPECT_TRUE(compile(harmless(), three_rows).program);
}

INSTANTIATE_TEST_SUITE_P(, NvrtcSlowBomb,
                         testing::Values("adversarial/doubling_macros/kernel",
                                         "harness/bombs/exponential_templates",
                                         "harness/bombs/gigantic_unrolling"),
                         [](const auto& info) { return name_of(info.param); });

TEST_F(NvrtcIsolated, ArraysOfGigabytesMeetTheMemoryLimit) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer needs all addresses";
#endif
  const CompileOutcome outcome = compile_bomb("adversarial/enormous_initialised_array/kernel");
  EXPECT_EQ(outcome.status, Status::compile_failed);
  EXPECT_NE(outcome.message.find("2 GiB of memory"), std::string::npos) << outcome.message;
  EXPECT_TRUE(compile(harmless(), three_rows).program);
}

/// What the compiler itself puts an end to.
struct RefusedBomb {
  const char* source;
  const char* complaint;
};

class NvrtcRefusedBomb : public NvrtcIsolated, public testing::WithParamInterface<RefusedBomb> {};

TEST_P(NvrtcRefusedBomb, FailsToCompile) {
  // The problem's header is the one header that can be made to include itself.
  const CompileOutcome outcome = compile_bomb(GetParam().source, "#include \"problem.h\"\n");
  EXPECT_EQ(outcome.status, Status::compile_failed);
  EXPECT_NE(outcome.message.find(GetParam().complaint), std::string::npos) << outcome.message;
}

INSTANTIATE_TEST_SUITE_P(
    , NvrtcRefusedBomb,
    testing::Values(RefusedBomb{"adversarial/endless_templates/kernel", "excessive recursion"},
                    RefusedBomb{"adversarial/endless_constant/kernel", "constant value"},
                    RefusedBomb{"harness/bombs/huge_array_of_constants", "constant value"},
                    RefusedBomb{"harness/bombs/includes_itself", "includes itself"}),
    [](const auto& info) { return name_of(info.param.source); });

}  // namespace
}  // namespace rekernel

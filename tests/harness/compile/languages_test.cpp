#include <gtest/gtest.h>

#include <filesystem>

#include "harness/base/files.h"
#include "harness/compile/assemble.h"
#include "harness/compile/compile_isolated.h"
#include "harness/compile/cubin.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

constexpr const char* ptx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry copy_one(.param .u64 from, .param .u64 to, .param .u32 n)
{
  .reg .b64 %rd<3>; .reg .f32 %f<2>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  ld.global.f32 %f1, [%rd1];
  st.global.f32 [%rd2], %f1;
  ret;
}
)";

std::string triton_softmax() {
  return read_file(fs::path(REKERNEL_SOURCE_DIR) /
                   "tests/harness/capture/recorded/triton_softmax/1091.1.module")
      .value();
}

class NvrtcLanguages : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(compiler_.ok()) << compiler_.error().message; }

  CompileOutcome compile(std::vector<Code> modules, const std::string& target) const {
    Program program;
    program.language = modules.front().language;
    program.source = modules.front().text;
    program.modules.assign(modules.begin() + 1, modules.end());
    Result<CompileOutcome> outcome = compile_isolated(*compiler_, program, "", target);
    if (!outcome) throw std::runtime_error(outcome.error().message);
    return *std::move(outcome);
  }

  Result<Compiler> compiler_ = Compiler::load();
  TemporaryFolder cache_;
  ScopedVariable variable_{"REKERNEL_CACHE", cache_.path().string()};
};

TEST_F(NvrtcLanguages, PtxIsAssembledForTheTarget) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    const CompileOutcome outcome = compile({{Language::ptx, ptx}}, target);
    ASSERT_TRUE(outcome.program) << outcome.message;
    const KernelResources* kernel = outcome.program->find("copy_one");
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(kernel->parameters.size(), 3u);
    EXPECT_GT(kernel->registers, 0);
    const Result<ComputeCapability> made_for = cubin_capability(outcome.program->cubin);
    ASSERT_TRUE(made_for.ok());
    EXPECT_EQ(target_for(*made_for), target);
  }
}

TEST_F(NvrtcLanguages, PtxThatIsWrongHasTheAssemblersWords) {
  std::string wrong = ptx;
  wrong.replace(wrong.find("st.global.f32"), 13, "st.glubal.f32");
  const CompileOutcome outcome = compile({{Language::ptx, wrong}}, "sm_80");
  EXPECT_FALSE(outcome.program);
  EXPECT_EQ(outcome.status, Status::compile_failed);
  EXPECT_NE(outcome.message.find("glubal"), std::string::npos) << outcome.message;

  std::string newer = ptx;
  newer.replace(newer.find("sm_80"), 5, "sm_90");
  EXPECT_FALSE(compile({{Language::ptx, newer}}, "sm_80").program);
  EXPECT_FALSE(compile({{Language::ptx, "extern \"C\" void k();"}}, "sm_80").program);
  EXPECT_FALSE(
      compile({{Language::ptx, ".include \"/etc/passwd\"\n" + std::string(ptx)}}, "sm_80").program);
}

TEST_F(NvrtcLanguages, MachineCodeIsReadAndNotLoaded) {
  const CompileOutcome outcome = compile({{Language::cubin, triton_softmax()}}, "sm_90a");
  ASSERT_TRUE(outcome.program) << outcome.message;
  const KernelResources* kernel = outcome.program->find("row_softmax");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->parameters.size(), 5u);

  const CompileOutcome elsewhere = compile({{Language::cubin, triton_softmax()}}, "sm_80");
  EXPECT_FALSE(elsewhere.program);
  EXPECT_EQ(elsewhere.status, Status::compile_failed);
  EXPECT_EQ(elsewhere.message, "is machine code for sm_90; expected such for sm_80");
  EXPECT_FALSE(compile({{Language::cubin, "no machine code"}}, "sm_90a").program);
  std::string cut = triton_softmax();
  cut.resize(cut.size() / 2);
  EXPECT_FALSE(compile({{Language::cubin, cut}}, "sm_90a").program);
}

TEST_F(NvrtcLanguages, ModulesKeepTheirKernelsApart) {
  const CompileOutcome outcome =
      compile({{Language::cuda, "extern \"C\" __global__ void one(int* a) { *a = 1; }"},
               {Language::ptx, ptx},
               {Language::cubin, triton_softmax()}},
              "sm_90a");
  ASSERT_TRUE(outcome.program) << outcome.message;
  EXPECT_NE(outcome.program->find("one"), nullptr);
  EXPECT_EQ(outcome.program->find("one", 1), nullptr);
  EXPECT_NE(outcome.program->find("copy_one", 1), nullptr);
  EXPECT_NE(outcome.program->find("row_softmax", 2), nullptr);
  const Result<CompileOutcome> again = compile_outcome_from(to_fields(outcome));
  ASSERT_TRUE(again.ok() && again->program);
  EXPECT_NE(again->program->find("row_softmax", 2), nullptr);

  const CompileOutcome broken =
      compile({{Language::cubin, triton_softmax()}, {Language::cuda, "nonsense"}}, "sm_90a");
  EXPECT_FALSE(broken.program);
  EXPECT_EQ(broken.message.rfind("kernel.1.cu: does not compile for sm_90a", 0), 0u)
      << broken.message;
}

TEST(Languages, CubinsSayWhatTheyWereMadeFor) {
  const Result<ComputeCapability> made_for = cubin_capability(triton_softmax());
  ASSERT_TRUE(made_for.ok());
  EXPECT_EQ(made_for->major, 9);
  EXPECT_EQ(made_for->minor, 0);
  Program program;
  program.language = Language::cubin;
  program.source = triton_softmax();
  EXPECT_TRUE(may_run_on(program, "sm_90a"));
  EXPECT_FALSE(may_run_on(program, "sm_80"));
  EXPECT_FALSE(may_run_on(program, "sm_100a"));
  EXPECT_FALSE(cubin_capability("ELF").ok());
}

}  // namespace
}  // namespace rekernel

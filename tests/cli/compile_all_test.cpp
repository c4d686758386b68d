#include "harness/cli/compile_all.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel {
namespace {

CompileCheck check(const std::string& target) { return {"softmax/mine", target, {}, {}, {}}; }

TEST(CompileText, SaysWhatWasSkippedAndDoesNotCountItAsAFailure) {
  std::vector<CompileCheck> checks{check("sm_80"), check("sm_103a")};
  checks[0].resources = {{"softmax", 32, 128, 0, 4, 8, {}}};
  checks[1].skipped = "NVRTC 12.6 does not know sm_103a";
  EXPECT_TRUE(all_compile(checks));
  EXPECT_EQ(compile_text(checks, {}),
            "candidate     target   kernel   registers  static shared  spills  verdict\n"
            "softmax/mine  sm_80    softmax         32            128      12  compiles\n"
            "softmax/mine  sm_103a                                             skipped\n"
            "skipped: NVRTC 12.6 does not know sm_103a\n");
  EXPECT_EQ(compile_text(checks, {.csv = true}),
            "candidate,target,kernel,registers,static shared,spills,verdict\n"
            "softmax/mine,sm_80,softmax,32,128,12,compiles\n"
            "softmax/mine,sm_103a,,,,,skipped\n");
  EXPECT_EQ(compile_json(checks).at(1).at("skipped"), "NVRTC 12.6 does not know sm_103a");
}

TEST(CompileText, NamesEveryFailureOnceMore) {
  std::vector<CompileCheck> checks{check("sm_80"), check("sm_89")};
  checks[1].error = "does not compile";
  EXPECT_FALSE(all_compile(checks));
  const std::string text = compile_text(checks, {});
  EXPECT_NE(text.find("\nsoftmax/mine for sm_89: does not compile\n"), std::string::npos) << text;
  EXPECT_EQ(skipped_text(checks), "");
}

}  // namespace
}  // namespace rekernel

#include "harness/compile/compiler_message.h"

#include <gtest/gtest.h>

#include <string>

namespace rekernel {
namespace {

const std::string undefined =
    "does not compile for sm_80 (NVRTC_ERROR_COMPILATION):\n"
    "kernel.cu(1): warning #177-D: variable \"c\" was declared but never referenced\n"
    "kernel.cu(2): error: identifier \"b\" is undefined\n"
    "  int a = b;\n"
    "          ^\n";

TEST(Headline, NamesTheFirstError) {
  EXPECT_EQ(headline(undefined),
            "does not compile for sm_80 (NVRTC_ERROR_COMPILATION): kernel.cu(2): error: identifier "
            "\"b\" is undefined");
  EXPECT_EQ(headline(for_any_target(undefined, "sm_80")),
            "does not compile (NVRTC_ERROR_COMPILATION): kernel.cu(2): error: identifier \"b\" is "
            "undefined");
}

TEST(Headline, OfOneLineIsThatLine) {
  EXPECT_EQ(headline("not compiled within 45 s"), "not compiled within 45 s");
  EXPECT_EQ(headline(""), "");
  EXPECT_EQ(headline("max error 3\nand more"), "max error 3");
}

TEST(Headline, IsNeverTheAssemblersReport) {
  EXPECT_EQ(headline("does not compile:\nptxas info    : 0 bytes gmem, no error\nodd words\n"),
            "does not compile: odd words");
  EXPECT_EQ(headline("does not compile:\nptxas info    : 0 bytes gmem\n"), "does not compile");
}

TEST(Headline, HoldsNothingThatATerminalObeys) {
  EXPECT_EQ(headline("failed:\n\x1b[31merror: \xc2\x9b"), "failed: ?[31merror: ?");
  EXPECT_EQ(headline("0123456789", 4), "0123…");
}

TEST(ToldMessage, SetsLinesOfOthersOff) {
  EXPECT_EQ(told_message("late"), "late\n");
  EXPECT_EQ(told_message("bad:\nerror: \"a\nsoftmax/v: passed\"\n"),
            "bad: error: \"a\n"
            "  | bad:\n"
            "  | error: \"a\n"
            "  | softmax/v: passed\"\n");
}

const std::string report =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'softmax' for 'sm_80'\n"
    "ptxas info    : Function properties for softmax\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 10 registers, used 0 barriers, 1073741824 bytes smem\n";

TEST(Warnings, AreWhatStandsBeforeTheReport) {
  EXPECT_EQ(warnings_in(report), "");
  const std::string warning = "kernel.cu(1): warning: odd\nptxas info    : forged\n  here\n";
  EXPECT_EQ(warnings_in(warning + report), warning.substr(0, warning.size() - 1));
  EXPECT_EQ(report_begin(warning + report), warning.size());
  EXPECT_EQ(report_begin(""), 0u);
}

TEST(SharedMemoryError, NamesKernelAndLimit) {
  EXPECT_EQ(shared_memory_error(report, 49152),
            "error: kernel \"softmax\" has 1073741824 bytes of static shared memory; expected at "
            "most 49152\n");
  EXPECT_EQ(shared_memory_error("ptxas info    : Used 10 registers, 49152 bytes smem", 49152), "");
}

}  // namespace
}  // namespace rekernel

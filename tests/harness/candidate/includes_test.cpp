#include <gtest/gtest.h>

#include "harness/candidate/candidate.h"

namespace rekernel {
namespace {

std::string refusal(std::string_view source) {
  const auto result = check_includes(source, "kernel.cu");
  return result.ok() ? "" : result.error().message;
}

TEST(Includes, AllowListedHeadersPass) {
  for (const char* name :
       {"problem.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "mma.h", "cooperative_groups.h",
        "cooperative_groups/memcpy_async.h", "cuda_pipeline.h", "cuda/barrier", "cuda/std/cstdint",
        "cuda/std/type_traits"}) {
    EXPECT_EQ(refusal("#include <" + std::string(name) + ">\n"), "");
    EXPECT_EQ(refusal("  #\tinclude \"" + std::string(name) + "\" // why\r\n"), "");
  }
  EXPECT_EQ(refusal("#include <mma.h> /* matrix\n units */\n"), "");
}

TEST(Includes, MessageNamesLineAndList) {
  EXPECT_EQ(refusal("\n\n#include <cuda_runtime.h>\n"),
            "kernel.cu: line 3: the header \"cuda_runtime.h\" is not on the allow-list: problem.h, "
            "cuda_fp16.h, cuda_bf16.h, cuda_fp8.h, mma.h, cooperative_groups.h, cuda_pipeline.h, "
            "cooperative_groups/…, cuda/…");
  EXPECT_EQ(refusal("#define H <mma.h>\n#include H\n"),
            "kernel.cu: line 2: #include takes <name> or \"name\" and nothing else on its line");
  EXPECT_EQ(refusal("int a;\\\n\\\n\n#pragma omp parallel\n"),
            "kernel.cu: line 4: only #pragma unroll, nounroll, once and nv_… are allowed");
}

TEST(Includes, HeadersOffTheListAreRefused) {
  for (const char* name : {"/etc/passwd",
                           "../secret.h",
                           "cuda/../../../etc/passwd",
                           "cuda/",
                           "cuda//std/x",
                           "cuda",
                           "cuda/std/..",
                           "cuda_runtime.h",
                           "cub/cub.cuh",
                           "cutlass/cutlass.h",
                           "cublas_v2.h",
                           "stdio.h",
                           "./problem.h",
                           "PROBLEM.H",
                           "problem.h ",
                           " problem.h",
                           "",
                           "cuda/\\u0061",
                           "cuda/a b",
                           "cooperative_groups/../cuda.h"}) {
    EXPECT_NE(refusal("#include <" + std::string(name) + ">\n"), "") << name;
    EXPECT_NE(refusal("#include \"" + std::string(name) + "\"\n"), "") << name;
  }
}

TEST(Includes, DisguisesAreRefused) {
  for (const char* source : {
           "#include \"/etc/passwd\"",
           "int a; #include \"/etc/passwd\"\n",
           "/* note */ # /* note */ include /* note */ \"/etc/passwd\"\n",
           "#/**/include/**/<x>\n",
           "# /* two\nlines */ include <x>\n",
           "#in\\\nclude <x>\n",
           "#in\\  \nclude <x>\n",
           "#in\\\r\nclude <x>\n",
           "#in\\\\\nclude <x>\n#\\\ninclude <x>\n",
           "\\\n#include <x>\n",
           "%:include <x>\n",
           "%: include <x>\n",
           "%\\\n:include <x>\n",
           "\?\?=include <x>\n",
           "\?\?= include <x>\n",
           "#in\?\?/\nclude <x>\n",
           "#/* *\\ \n/ note */include <x>\n",
           "// #include <x>\n",
           "/* #include <x> */\n",
           "const char* a = \"#include <x>\";\n",
           "const char* a = R\"(\n#include <x>\n)\";\n",
           "R\"(\\\n)\"\n#include <x>\n",
           "#if 0\n#include <x>\n#endif\n",
           "#define H <x>\n#include H\n",
           "#include <mma.h> <x>\n",
           "#include <mma.h> \\\n <x>\n",
           "#include /* <mma.h> */ <x>\n",
           "#include <mma.h\n>\n",
           "#include \"mma.h>\n",
           "#include\n",
           "#include",
           "#include <mma.h>#include <x>\n",
           "#include_next <mma.h>\n",
           "#import <mma.h>\n",
           "#embed \"mma.h\"\n",
           "#\xc2\xa0include <x>\n",
           "#\\u0069nclude <x>\n",
           "import <mma.h>;\n",
           "import /**/ \"mma.h\";\n",
           "export import\n<mma.h>;\n",
       }) {
    EXPECT_NE(refusal(source), "") << source;
  }
}

TEST(Includes, ProbesPragmasAndAssemblerFilesAreRefused) {
  for (const char* source :
       {"#if __has_include(<x>)\n", "#if __has_include_next(<x>)\n", "#if __has_embed(\"x\")\n",
        "#define A __has_\\\ninclude\n", "_Pragma(\"unroll\")\n", "__pragma(x)\n",
        "#pragma include_alias(\"a\", \"b\")\n", "#pragma GCC system_header\n", "#pragma\n",
        "# pragma omp\n", "%:pragma omp\n", "asm(\".include \\\"/etc/passwd\\\"\");\n",
        "asm(\".incbin \\\"/etc/passwd\\\"\");\n", "__has_\\u0069nclude\n", "\\u{69}\n",
        "\\N{X}\n"}) {
    EXPECT_NE(refusal(source), "") << source;
  }
}

TEST(Includes, PastedWordsAreRefused) {
  for (const char* source : {
           "#define P(a, b) a##b\n#if P(__has_, include)(<x>)\n",
           "#define P(a, b) a##b\nstatic_assert(P(__has_in, clude)(<x>));\n",
           "#define P(a, b, c) a##b##c\nint i = P(__h, as_incl, ude)(<x>);\n",
           "#define H __has_ %:\\\n%: include\n",
           "#define I _CCCL_PP_CAT(__has_, include)\n",
           "#define P(a, b) a##b\nP(_Prag, ma)(\"x\")\n",
           "#define P(a, b) a##b\nP(_, P(P(r, a), P(g, m))) P ragma Pragma\n",
           "#if _CCCL_HAS_INCLUDE(<x>)\n",
           "#define P(a, b) a##b\n#if P(_CCCL_HAS_, INCLUDE)(<x>)\n",
           "#define P(a, b) a##b\n#if P(_CCCL_HAS_I, NCLUDE)(<x>)\n",
       }) {
    EXPECT_NE(refusal(source), "") << source;
  }
  // Without a way to paste, words are words.
  EXPECT_EQ(refusal("asm(\"_\"); // has as include\nint h, a, s, i, n, c, l, u, d, e;\n"), "");
  EXPECT_EQ(
      refusal("#define P(a, b) a##b\nint P(include, s), has, h, a, s, i, n, c, l, u, d, e;\n"), "");
}

TEST(Includes, WordsOfThePlanCountAsPasted) {
  const std::string source =
      "#define P(a, b) a##b\n#define Q(a, b) P(a, b)\n#if Q(__has_, B)(<x>)\n";
  EXPECT_TRUE(check_includes(source, "kernel.cu").ok());
  EXPECT_TRUE(check_includes(source, "kernel.cu", {{"B", "3"}}).ok());
  const auto refused = check_includes(source, "kernel.cu", {{"B", "include"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "kernel.cu: its words can be pasted to __has_include, which is not allowed");
}

TEST(Includes, ControlCharactersAreRefused) {
  EXPECT_EQ(refusal("int a;\n#\vinclude <x>\n"), "kernel.cu: line 2: control character 11");
  EXPECT_EQ(refusal("#\finclude <x>\n"), "kernel.cu: line 1: control character 12");
  EXPECT_EQ(refusal("int a;\r#include <x>\r"), "kernel.cu: line 1: control character 13");
  EXPECT_EQ(refusal(std::string_view("a\0b", 3)), "kernel.cu: line 1: control character 0");
}

TEST(Includes, OrdinaryCodePasses) {
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal(R"(
#include "problem.h"
#define NAME(x) x##_kernel
#define TEXT(x) #x
#define LONG(a) \
  do { a; } while (0)
#ifdef STAGES
#endif
// issue #3: imports from "global" memory, the include guard
extern "C" __global__ void NAME(copy)(const float* in, float* out) {
  #pragma unroll 4
  for (int i = 0; i < 4; ++i) out[i] = in[i] * 100 % 7;
  asm volatile("cp.async.wait_all;\n" ::: "memory");
  const char* s = "50%: \u00e9";
}
)"),
            "");
}

// Ends by the test's time limit where the time grows with the square of the size.
TEST(Includes, NestedCommentOpeningsTakeLinearTime) {
  std::string opened;
  while (opened.size() < (1u << 20)) opened += "#/*";
  EXPECT_EQ(refusal(opened), "");
  std::string imports;
  while (imports.size() < (1u << 19)) imports += "import/*";
  EXPECT_EQ(refusal(imports + "*/" + std::string(1u << 19, '\n')), "");
  EXPECT_EQ(refusal(imports + "*/" + std::string(1u << 19, '\n') + "<x>"),
            "kernel.cu: line 1: import is not allowed");
}

TEST(Includes, AMessageHoldsAHeadersNameAsText) {
  EXPECT_EQ(refusal("#include \"a\tb\"\n").substr(0, 38),
            "kernel.cu: line 1: the header \"a?b\" is");
  const std::string cut = refusal("#include \"x" + std::string(59, 'x') + "é\"\n");
  EXPECT_NE(cut.find("xx…\" is"), std::string::npos) << cut;
}

}  // namespace
}  // namespace rekernel

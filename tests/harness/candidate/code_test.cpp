#include "harness/candidate/code.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>

#include "harness/base/files.h"
#include "harness/candidate/library_kernels.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

constexpr const char* plan = R"({"schema": 1, "problem": "softmax", "name": "taken", "idea": "x",
  "arch": "sm_90a", "origin": {"note": "captured"}, "workspace": {"rest": 4096},
  "launches": [
    {"memset": "rest", "value": 0, "offset_bytes": 64, "bytes": 4},
    {"kernel": "_ZN2at6native7softmaxILi4EEEvPT_", "grid": [1], "block": [32], "args": ["x", "y"]},
    {"kernel": "second.part$1", "module": 1, "grid": [1], "block": [32],
     "args": [{"bytes": "00112233445566778899aabbccddeeff",
               "addresses": [{"at": 0, "of": "x", "offset_bytes": 16}, {"at": 8, "of": "rest"}]}]}]})";

std::vector<Code> two_modules() {
  return {{Language::cubin, "machine code"}, {Language::ptx, ".version 8.0\n"}};
}

std::string complaint(std::string_view before, std::string_view after) {
  std::string text = plan;
  const std::size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  text.replace(at, before.size(), after);
  const Result<Candidate> candidate = parse_candidate(text, two_modules(), "k/kernel.json");
  return candidate ? "" : candidate.error().message;
}

TEST(Code, OfSeveralLanguagesAndModulesIsRead) {
  const Result<Candidate> candidate = parse_candidate(plan, two_modules(), "k/kernel.json");
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  EXPECT_EQ(candidate->program.language, Language::cubin);
  ASSERT_EQ(candidate->program.modules.size(), 1u);
  EXPECT_EQ(candidate->program.modules[0].language, Language::ptx);
  const auto& memset = std::get<Memset>(candidate->program.steps[0]);
  EXPECT_EQ(memset.offset_bytes, 64);
  EXPECT_EQ(memset.bytes, 4);
  const auto& launch = std::get<KernelLaunch>(candidate->program.steps[2]);
  EXPECT_EQ(launch.module, 1);
  const auto& argument = std::get<BytesArgument>(launch.args.at(0));
  EXPECT_EQ(argument.bytes.size(), 16u);
  EXPECT_EQ(argument.bytes[1], '\x11');
  ASSERT_EQ(argument.addresses.size(), 2u);
  EXPECT_EQ(argument.addresses[0].offset_bytes, 16);
  EXPECT_EQ(argument.addresses[1].buffer, "rest");

  const Result<Candidate> again =
      parse_candidate(candidate_json(*candidate), two_modules(), "k/kernel.json");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(candidate_json(*again), candidate_json(*candidate));
  EXPECT_EQ(candidate_sha256(*again), candidate_sha256(*candidate));
}

/// A launch whose parameter is 192 bytes with a tensor map at 64.
std::string plan_with_map(const std::string& at, const std::string& of = "x") {
  return R"({"schema": 1, "problem": "softmax", "name": "taken", "idea": "i", "arch": "sm_90a",
    "origin": {"note": "n"},
    "launches": [{"kernel": "k", "grid": [1], "block": [1], "args": [{"bytes": ")" +
         std::string(2 * 192, '1') + R"(", "addresses": [{"at": 56, "of": "y"}],
         "tensor_maps": [{"at": )" +
         at + R"(, "tensor_map": {"of": ")" + of +
         R"(", "dtype": "f32", "dims": [65536, 4096], "strides_bytes": [262144],
            "box": [32, 64], "swizzle": "128B"}}]}]}]})";
}

TEST(Code, TensorMapsStandInBytes) {
  const std::vector<Code> code = {{Language::cubin, "machine code"}};
  const Result<Candidate> candidate = parse_candidate(plan_with_map("64"), code, "k");
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  const auto& launch = std::get<KernelLaunch>(candidate->program.steps[0]);
  const auto& argument = std::get<BytesArgument>(launch.args.at(0));
  ASSERT_EQ(argument.tensor_maps.size(), 1u);
  EXPECT_EQ(argument.tensor_maps[0].at, 64);
  EXPECT_EQ(argument.tensor_maps[0].map.buffer, "x");
  const Result<Candidate> again = parse_candidate(candidate_json(*candidate), code, "k");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(candidate_sha256(*again), candidate_sha256(*candidate));
  EXPECT_NE(candidate_sha256(parse_candidate(plan_with_map("64", "y"), code, "k").value()),
            candidate_sha256(*candidate));
}

TEST(Code, TensorMapsInBytesAreLookedAt) {
  const auto refused = [](const std::string& at, const std::string& of = "x") {
    const Result<Candidate> candidate =
        parse_candidate(plan_with_map(at, of), {{Language::cubin, "machine code"}}, "k");
    return candidate ? "" : candidate.error().message;
  };
  const std::string where = "k: launches[0].args[0].tensor_maps[0].";
  const std::string places = "at: expected multiples of 64, rising, with 128 bytes from each on";
  EXPECT_EQ(refused("32"), where + places);
  EXPECT_EQ(refused("128"), where + places);
  EXPECT_EQ(refused("0"), where + "at: the address at 56 lies in the tensor map");
  EXPECT_EQ(refused("64", "z"), where + "tensor_map.of: unknown buffer \"z\"; known: x, y");
}

TEST(Code, DecidesTheHash) {
  const auto hash = [](std::string_view before, const std::string& after,
                       const std::vector<Code>& modules) {
    std::string text = plan;
    text.replace(text.find(before), before.size(), after);
    return candidate_sha256(parse_candidate(text, modules, "k").value());
  };
  const std::string as_it_is = hash("taken", "taken", two_modules());
  EXPECT_EQ(hash("taken", "other", two_modules()), as_it_is);
  std::vector<Code> other_language = two_modules();
  other_language[1].language = Language::cubin;
  EXPECT_NE(hash("taken", "taken", other_language), as_it_is);
  EXPECT_NE(hash("\"module\": 1", "\"module\": 0", two_modules()), as_it_is);
  EXPECT_NE(hash("ddeeff", "ddeefe", two_modules()), as_it_is);
  EXPECT_NE(hash("\"offset_bytes\": 16", "\"offset_bytes\": 24", two_modules()), as_it_is);
  EXPECT_NE(hash("\"bytes\": 4", "\"bytes\": 8", two_modules()), as_it_is);
}

TEST(Code, PlansOfStrangersAreLookedAt) {
  const std::string where = "k/kernel.json: launches";
  EXPECT_EQ(complaint("\"module\": 1", "\"module\": 2"),
            where + "[2].module: expected an integer from 0 to 1, got 2");
  EXPECT_EQ(complaint("second.part$1", "second part"),
            where +
                "[2].kernel: expected a kernel's name of letters, digits, _, $ and ., got "
                "\"second part\"");
  EXPECT_EQ(complaint("ddeeff", "ddeef"),
            where +
                "[2].args[0].bytes: expected 1 or more bytes as pairs of hexadecimal digits, "
                "got \"00112233445566778899aabbccddeef\"");
  EXPECT_EQ(complaint("\"at\": 8", "\"at\": 12"),
            where +
                "[2].args[0].addresses[1].at: expected multiples of 8, rising, with 8 bytes "
                "from each on");
  EXPECT_EQ(complaint("\"at\": 8", "\"at\": 0"),
            where +
                "[2].args[0].addresses[1].at: expected multiples of 8, rising, with 8 bytes "
                "from each on");
  EXPECT_EQ(complaint("\"offset_bytes\": 16", "\"offset_bytes\": 1073741825"),
            where +
                "[2].args[0].addresses[0].offset_bytes: expected an integer from 0 to "
                "1073741824, got 1073741825");
  EXPECT_EQ(complaint("\"of\": \"rest\"", "\"of\": \"z\""),
            where + "[2].args[0].addresses[1].of: unknown buffer \"z\"; known: x, y, rest");
  EXPECT_EQ(complaint("\"bytes\": 4", "\"bytes\": 4033"),
            where + "[0].bytes: expected an integer from 1 to 4032, got 4033");
}

TEST(Code, TextIsLookedAtInItsLanguage) {
  const auto refusal = [](Code code) {
    const Result<Candidate> candidate = parse_candidate(
        R"({"schema": 1, "problem": "softmax", "name": "n", "idea": "x", "arch": "sm_80",
            "origin": {"note": "n"},
            "launches": [{"kernel": "k", "grid": [1], "block": [1], "args": []}]})",
        {std::move(code)}, "k/kernel.json");
    return candidate ? "" : candidate.error().message;
  };
  EXPECT_EQ(refusal({Language::ptx, ".version 8.0\n// \xc3\xa9\n"}),
            "k/kernel.ptx: line 2: byte 195; expected ASCII text");
  EXPECT_EQ(refusal({Language::ptx, std::string((8u << 20) + 1, ' ')}),
            "k/kernel.ptx: larger than 8388608 bytes");
  EXPECT_EQ(refusal({Language::cubin, std::string((48u << 20) + 1, ' ')}),
            "k/kernel.cubin: larger than 50331648 bytes");
  EXPECT_EQ(refusal({Language::cuda, "\xff"}), "k/kernel.cu: not UTF-8 text");
  EXPECT_EQ(refusal({Language::cubin, "\xff"}), "");  // whoever compiles it reads it
}

class CodeFolder : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / file) << text;
  }
  std::string complaint() const {
    const Result<Candidate> candidate = load_candidate(folder_);
    return candidate ? "" : candidate.error().message;
  }
  TemporaryFolder root_;
  fs::path folder_ = root_ / "taken";
};

TEST_F(CodeFolder, HoldsOneLanguageAModule) {
  write("kernel.json", plan);
  write("kernel.cubin", "machine code");
  write("kernel.1.ptx", ".version 8.0\n");
  EXPECT_EQ(complaint(), "");
  write("kernel.1.cu", "");
  EXPECT_EQ(complaint(),
            folder_.string() + ": has kernel.1.cu and kernel.1.ptx; expected one of them");
}

TEST_F(CodeFolder, TakesNoLinks) {
  write("kernel.json", plan);
  write("kernel.cubin", "machine code");
  fs::create_symlink("/etc/hostname", folder_ / "kernel.1.ptx");
  EXPECT_EQ(complaint(), (folder_ / "kernel.1.ptx").string() + ": a link; expected a regular file");
}

TEST_F(CodeFolder, BelowGeneratedHoldsCudaAlone) {
  folder_ = root_ / "generated" / "softmax" / "taken";
  write("kernel.json", plan);
  write("kernel.cubin", "machine code");
  write("kernel.1.ptx", ".version 8.0\n");
  EXPECT_EQ(complaint(),
            folder_.string() + ": what is committed is CUDA C++: expected kernel.cu alone");
}

TEST_F(CodeFolder, IsWrittenWholeAndReadBack) {
  const Candidate candidate = parse_candidate(plan, two_modules(), "k").value();
  const Result<Ok> written = write_candidate(folder_, candidate);
  ASSERT_TRUE(written.ok()) << written.error().message;
  const Result<Candidate> again = load_candidate(folder_);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(candidate_sha256(*again), candidate_sha256(candidate));
  EXPECT_EQ(write_candidate(folder_, candidate).error().message,
            folder_.string() + ": cannot be made; it exists already");
}

TEST_F(CodeFolder, IsKnownBeforeToHaveAPlaceOrNone) {
  EXPECT_TRUE(check_can_be_made(root_ / "new" / "newer" / "mine").ok());
  EXPECT_FALSE(fs::exists(root_ / "new"));
  EXPECT_TRUE(check_can_be_made("mine").ok());
  std::ofstream(root_ / "file") << "text";
  EXPECT_EQ(check_can_be_made(root_ / "file" / "mine").error().message,
            (root_ / "file").string() + ": not a folder that can be written to");
}

TEST(Code, TravelsBetweenProcesses) {
  const Candidate candidate = parse_candidate(plan, two_modules(), "k").value();
  const std::string bytes = code_fields(candidate.program);
  const Result<std::vector<Code>> modules = code_from_fields(bytes);
  ASSERT_TRUE(modules.ok());
  ASSERT_EQ(modules->size(), 2u);
  EXPECT_EQ((*modules)[0].text, "machine code");
  EXPECT_EQ((*modules)[1].language, Language::ptx);
  EXPECT_FALSE(code_from_fields(bytes.substr(0, bytes.size() - 1)).ok());
  EXPECT_FALSE(code_from_fields("").ok());
}

TEST(LibraryKernels, AreKnownByTheirNames) {
  const auto libraries = [](const std::string& kernel) {
    Program program;
    KernelLaunch launch;
    launch.kernel = kernel;
    program.steps.emplace_back(launch);
    return libraries_of(program);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(libraries("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT"), Names{"cuBLAS"});
  EXPECT_EQ(libraries("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8__5x_cublas"),
            Names{"cuBLAS"});
  EXPECT_EQ(libraries("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_execute_kernel__5x_cudnn"),
            Names{"cuDNN"});
  EXPECT_EQ(libraries("_ZN2at6native43_GLOBAL__N__b6de9c8c_10_SoftMax"), Names{"PyTorch"});
  EXPECT_EQ(libraries("triton_red_fused__softmax_0"), Names{});
  EXPECT_EQ(libraries("row_softmax"), Names{});
}

}  // namespace
}  // namespace rekernel

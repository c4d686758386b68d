// Plans written in axes: what they are at which sizes, and what is wrong with them.

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <filesystem>

#include "harness/candidate/candidate.h"
#include "harness/candidate/code.h"
#include "harness/compile/compile.h"
#include "harness/problems/catalog.h"
#include "harness/problems/other_sizes.h"
#include "harness/problems/sizes.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* place_of_mine = "generated/softmax/mine/kernel.json";
constexpr const char* source_of_mine =
    "extern \"C\" __global__ void k(const float* x, float* y) {}\n";

std::string plan_with(const std::string& rest, const std::string& arch = "sm_80") {
  return R"({"schema": 1, "problem": "softmax", "name": "mine", "idea": "one pass", "arch": ")" +
         arch + R"(", "origin": {"note": "written for a test"}, )" + rest + "}";
}

std::string launch_with(const std::string& keys) {
  return R"("launches": [{"kernel": "k", "args": ["x", "y"], )" + keys + "}]";
}

Candidate valid(const std::string& plan) {
  auto candidate = parse_candidate(plan, source_of_mine, place_of_mine);
  EXPECT_TRUE(candidate) << (candidate ? "" : candidate.error().message);
  return candidate ? *std::move(candidate) : Candidate{};
}

std::string error_of(const std::string& plan) {
  const auto candidate = parse_candidate(plan, source_of_mine, place_of_mine);
  return candidate ? "" : candidate.error().message;
}

Problem softmax_at(std::int64_t rows, std::int64_t columns) {
  return *problem_at(*find_problem("softmax"), {{"rows", rows}, {"columns", columns}});
}

const KernelLaunch& launch_of(const Candidate& candidate, std::size_t step = 0) {
  return std::get<KernelLaunch>(candidate.program.steps.at(step));
}

const std::string everything = plan_with(
    R"json("compile": {"defines": {"THREADS": 128, "TYPE": "float"}},
       "workspace": {"sums": "8 * rows", "flags": 64},
       "launches": [
         {"memset": "sums", "value": "rows % 256", "offset_bytes": "4 * rows", "bytes": "4 * rows"},
         {"kernel": "k", "grid": ["ceil_div(columns, THREADS)", "min(rows, 8)"],
          "block": ["THREADS"], "cluster": ["1"], "dynamic_shared_bytes": "4 * THREADS",
          "args": ["x", {"i32": "rows - 1"}, {"i64": "-columns"}, {"u64": "rows * columns"},
                   {"f32": 0.1},
                   {"tensor_map": {"of": "x", "dtype": "f32", "dims": ["columns", "rows"],
                    "strides_bytes": ["4 * columns"], "box": ["min(columns, 64)", 1]}}]},
         {"kernel": "tail", "grid": [{"per_sm": "2"}], "block": [32],
          "when": "columns % 4 != 0 or rows == 1", "args": ["y"]}])json",
    "sm_90a");

TEST(PlanInAxes, HasNumbersAtTheProblemsOwnSizes) {
  const Candidate candidate = valid(everything);
  EXPECT_TRUE(candidate.is_in_axes());
  EXPECT_TRUE(candidate.sizes.empty());
  ASSERT_EQ(candidate.program.steps.size(), 2u);  // 65536 columns
  EXPECT_EQ(candidate.program.workspaces.at(0).bytes, 8 * 4096);
  const auto& memset = std::get<Memset>(candidate.program.steps[0]);
  EXPECT_EQ(memset.value, 0);
  EXPECT_EQ(memset.offset_bytes, 4 * 4096);
  EXPECT_EQ(memset.bytes, 4 * 4096);
  const KernelLaunch& launch = launch_of(candidate, 1);
  EXPECT_EQ(launch.grid[0].count, 512);
  EXPECT_EQ(launch.grid[1].count, 8);
  EXPECT_EQ(launch.block[0], 128);
  EXPECT_EQ(launch.dynamic_shared_bytes, 512);
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[1]), ScalarArgument(std::int32_t{4095}));
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[2]), ScalarArgument(std::int64_t{-65536}));
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[3]), ScalarArgument(std::uint64_t{1} << 28));
  const auto& map = std::get<TensorMapArgument>(launch.args[5]);
  EXPECT_EQ(map.dims, (std::vector<std::int64_t>{65536, 4096}));
  EXPECT_EQ(map.box, (std::vector<std::int64_t>{64, 1}));
}

TEST(PlanInAxes, HasOthersAtOtherSizes) {
  const Candidate own = valid(everything);
  const Result<Candidate> sized = at_sizes(own, softmax_at(1, 132));
  ASSERT_TRUE(sized) << sized.error().message;
  EXPECT_EQ(sized->sizes, (Sizes{{"rows", 1}, {"columns", 132}}));
  ASSERT_EQ(sized->program.steps.size(), 3u);  // `when` holds: one row
  EXPECT_EQ(sized->program.workspaces.at(0).bytes, 8);
  EXPECT_EQ(std::get<Memset>(sized->program.steps[0]).value, 1);
  EXPECT_EQ(launch_of(*sized, 1).grid[0].count, 2);
  EXPECT_EQ(launch_of(*sized, 1).grid[1].count, 1);
  EXPECT_EQ(std::get<TensorMapArgument>(launch_of(*sized, 1).args[5]).strides_bytes,
            std::vector<std::int64_t>{528});
  EXPECT_EQ(launch_of(*sized, 2).kernel, "tail");
  EXPECT_TRUE(launch_of(*sized, 2).grid[0].per_sm);
  // It is the same candidate, whatever its sizes.
  EXPECT_EQ(candidate_sha256(*sized), candidate_sha256(own));
  EXPECT_EQ(candidate_json(*sized), candidate_json(own));
  EXPECT_EQ((*problem_of(*sized))->attribute("columns"), 132);
  EXPECT_EQ((*problem_of(own))->attribute("columns"), 65536);
}

TEST(PlanInAxes, IsWrittenAsItWasRead) {
  const Candidate candidate = valid(everything);
  const std::string text = candidate_json(candidate);
  EXPECT_NE(text.find("\"ceil_div(columns, THREADS)\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"when\": \"columns % 4 != 0 or rows == 1\""), std::string::npos) << text;
  const auto again = parse_candidate(text, source_of_mine, place_of_mine);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(candidate_json(*again), text);
  EXPECT_EQ(candidate_sha256(*again), candidate_sha256(candidate));
  EXPECT_EQ(std::get<ScalarArgument>(launch_of(*again, 1).args[4]), ScalarArgument(0.1f));
}

TEST(PlanInAxes, HashesByWhatItSaysAndNotByTheOrderOfItsKeys) {
  const Candidate one = valid(plan_with(launch_with(R"("grid": ["rows"], "block": [32])")));
  const Candidate same = valid(plan_with(launch_with(R"("block": [32], "grid": ["rows"])")));
  const Candidate other = valid(plan_with(launch_with(R"("grid": ["rows + 0"], "block": [32])")));
  const Candidate number = valid(plan_with(launch_with(R"("grid": [4096], "block": [32])")));
  EXPECT_EQ(candidate_sha256(one), candidate_sha256(same));
  EXPECT_NE(candidate_sha256(one), candidate_sha256(other));
  EXPECT_NE(candidate_sha256(one), candidate_sha256(number));
  EXPECT_FALSE(number.is_in_axes());
  const Result<Candidate> sized = at_sizes(number, softmax_at(2, 2));
  EXPECT_EQ(sized.error().message,
            "softmax/mine: its plan has no expressions of axes: it is for its problem's own sizes");
}

TEST(PlanInAxes, ErrorsNameKeyAndReason) {
  const std::string place = std::string(place_of_mine) + ": launches[0].";
  const auto error = [](const std::string& keys) { return error_of(plan_with(launch_with(keys))); };
  EXPECT_EQ(error(R"("grid": ["lines"], "block": [32])"),
            place +
                "grid[0]: \"lines\": column 1: unknown name 'lines': expected one of columns, "
                "rows");
  EXPECT_EQ(
      error(R"("grid": [1, "rows * columns"], "block": [32])"),
      place + "grid[1]: expected an integer from 1 to 65535, got \"rows * columns\" = 268435456");
  EXPECT_EQ(error(R"("grid": ["rows - 4096"], "block": [32])"),
            place + "grid[0]: expected an integer from 1 to 2147483647, got \"rows - 4096\" = 0");
  EXPECT_EQ(error(R"("grid": ["-rows"], "block": [32])"),
            place + "grid[0]: expected an integer from 1 to 2147483647, got \"-rows\" = -4096");
  EXPECT_EQ(error(R"json("grid": ["rows / (rows - 4096)"], "block": [32])json"),
            place + "grid[0]: \"rows / (rows - 4096)\": column 6: a division by 0");
  EXPECT_EQ(error(R"("grid": [1], "block": ["rows", "1"])"),
            place + "block[0]: expected an integer from 1 to 1024, got \"rows\" = 4096");
  EXPECT_EQ(error(R"("grid": [1], "block": [64, "rows / 128"])"),
            place + "block: expected at most 1024 threads, got 2048");
  EXPECT_EQ(error(R"("grid": [1], "block": [32], "when": "rows")"),
            place +
                "when: \"rows\": column 1: expected a condition such as 'rows % 4 == 0', got "
                "an integer");
  EXPECT_EQ(error(R"("grid": [1], "block": [32], "when": true)"),
            place + "when: expected a string, got true");
  EXPECT_EQ(error(R"("grid": [1], "block": [32], "when": "rows == 1")"),
            std::string(place_of_mine) +
                ": launches: expected at least one kernel, and no \"when\" of one holds");
  EXPECT_NE(error(R"("grid": [1], "block": [32], "module": "0")").find("expected an integer"),
            std::string::npos);
}

TEST(PlanInAxes, NamesThatMeanTwoThingsAreErrors) {
  const std::string plan = plan_with(R"("compile": {"defines": {"rows": 4}}, )" +
                                     launch_with(R"("grid": ["rows"], "block": [32])"));
  EXPECT_EQ(error_of(plan), std::string(place_of_mine) +
                                ": launches[0].grid[0]: \"rows\": 'rows' is an axis and a macro of "
                                "\"defines\": rename the macro");
  // Macros that are no integers have no value.
  const std::string text = plan_with(R"("compile": {"defines": {"TYPE": "float"}}, )" +
                                     launch_with(R"("grid": ["TYPE"], "block": [32])"));
  EXPECT_NE(error_of(text).find("unknown name 'TYPE'"), std::string::npos);
}

TEST(PlanInAxes, ErrorsAtOtherSizesNameTheSizes) {
  const Candidate candidate =
      valid(plan_with(launch_with(R"("grid": ["columns / 128"], "block": [32])")));
  EXPECT_EQ(at_sizes(candidate, softmax_at(3, 100)).error().message,
            "softmax/mine/kernel.json at columns 100, rows 3: launches[0].grid[0]: expected an "
            "integer from 1 to 2147483647, got \"columns / 128\" = 0");
  EXPECT_TRUE(at_sizes(candidate, softmax_at(3, 128)));
  // What is within a buffer depends on its size.
  const Candidate map = valid(plan_with(
      R"("launches": [{"kernel": "k", "grid": ["1"], "block": [32], "args": ["y",
          {"tensor_map": {"of": "x", "dtype": "f32", "dims": [65536], "strides_bytes": [],
                          "box": [32]}}]}])",
      "sm_90a"));
  EXPECT_NE(at_sizes(map, softmax_at(3, 100))
                .error()
                .message.find("reaches 262144 bytes into \"x\", which has 1200"),
            std::string::npos);
}

TEST(PlanInAxes, StepsWhoseConditionDoesNotHoldCanHaveAnyValuesAndNoUnknownWords) {
  const auto with_second = [](const std::string& second) {
    return error_of(plan_with(
        R"("workspace": {"w": 64}, "launches": [
            {"kernel": "k", "grid": [1], "block": [32], "args": ["x"]}, )" +
        second + "]"));
  };
  EXPECT_EQ(with_second(
                R"json({"kernel": "k", "grid": ["rows - 4096"], "block": ["rows", 1024],
                  "when": "rows < 9", "args": ["x", {"i32": "columns / (rows - 4096)"}]})json"),
            "");
  EXPECT_EQ(with_second(R"({"memset": "w", "value": 0, "offset_bytes": 4096, "bytes": "rows",
                            "when": "rows < 9"})"),
            "");
  EXPECT_NE(with_second(R"({"kernel": "k", "grid": ["lines"], "block": [32], "when": "rows < 9",
                            "args": []})")
                .find("unknown name 'lines'"),
            std::string::npos);
  EXPECT_NE(with_second(R"({"kernel": "k", "grid": [1.5], "block": [32], "when": "rows < 9",
                            "args": []})")
                .find("expected an integer"),
            std::string::npos);
  EXPECT_NE(with_second(R"({"kernel": "k", "grid": [1], "block": [32], "when": "rows < 9",
                            "args": ["z"]})")
                .find("unknown buffer"),
            std::string::npos);
  EXPECT_NE(with_second(R"({"kernel": "k", "grid": [1], "block": [32], "when": "rows < 9",
                            "shared": 1, "args": []})")
                .find("unknown key"),
            std::string::npos);
}

TEST(PlanInAxes, CrossesProcessesWithItsSizes) {
  const Candidate candidate = valid(everything);
  const Candidate sized = *at_sizes(candidate, softmax_at(8, 400));
  const auto arrived =
      parse_candidate_at(sized.sizes, candidate_json(sized), code_of(sized.program), "runner");
  ASSERT_TRUE(arrived) << arrived.error().message;
  EXPECT_EQ(arrived->sizes, sized.sizes);
  EXPECT_EQ(launch_of(*arrived, 1).grid[0].count, 4);
  EXPECT_FALSE(parse_candidate_at({{"rows", 3}, {"heads", 2}}, candidate_json(sized),
                                  code_of(sized.program), "runner"));
  EXPECT_TRUE(parse_candidate_at({}, candidate_json(sized), code_of(sized.program), "runner")
                  ->sizes.empty());
}

/// The worked examples of tests/in_axes.
std::vector<fs::path> examples() {
  const fs::path folder = fs::path(REKERNEL_SOURCE_DIR) / "tests" / "in_axes";
  return {folder / "slow_softmax", folder / "row_on_chip_or_not"};
}

TEST(PlanInAxes, OfACommittedKernelLaunchesItAsBefore) {
  Result<Candidate> committed =
      load_candidate(fs::path(REKERNEL_SOURCE_DIR) / "generated/softmax/row_on_chip_plain_stores");
  ASSERT_TRUE(committed);
  committed->written.clear();
  const Result<Candidate> in_axes = load_candidate(examples()[1]);
  ASSERT_TRUE(in_axes) << in_axes.error().message;
  Candidate evaluated = *in_axes;
  evaluated.written.clear();
  const auto launches = [](const Candidate& candidate) {
    return json::serialize(json::parse(candidate_json(candidate)).at("launches"));
  };
  EXPECT_EQ(launches(evaluated), launches(*committed));
}

TEST(NvrtcPlanInAxes, ExamplesCompileAtOtherSizes) {
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) GTEST_SKIP() << compiler.error().message;
  for (const fs::path& folder : examples()) {
    const Result<Candidate> candidate = load_candidate(folder);
    ASSERT_TRUE(candidate) << candidate.error().message;
    for (const Problem& instance : drawn_instances(*find_problem(candidate->problem), 1, 3)) {
      const Result<Candidate> sized = at_sizes(*candidate, instance);
      ASSERT_TRUE(sized) << sized.error().message;
      const Result<CompiledProgram> compiled =
          compiler->compile(sized->program, problem_header(instance), "sm_80");
      ASSERT_TRUE(compiled) << sizes_text(sized->sizes) << ": " << compiled.error().message;
      EXPECT_TRUE(check_launches(sized->program, *compiled, "test"));
    }
  }
}

}  // namespace
}  // namespace rekernel

// Plans in axes and problems of one size, as a user meets them.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "harness/base/files.h"
#include "harness/gpu/cuda.h"
#include "program.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace json = boost::json;

using testing::ProgramOutcome;
using testing::run_program;

const std::string examples = "tests/in_axes/slow_softmax tests/in_axes/row_on_chip_or_not";

TEST(NvrtcInAxes, CheckCompilesAPlanAtOtherSizesToo) {
  const ProgramOutcome outcome = run_program("check " + examples, REKERNEL_SOURCE_DIR);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  for (const char* name : {"slow_softmax", "row_on_chip_or_not"}) {
    const std::string good =
        std::string("softmax/") + name + ": its plan is in axes, and also good";
    EXPECT_NE(outcome.output.find(good), std::string::npos) << outcome.output;
  }
  EXPECT_NE(outcome.output.find("columns 1, rows 1"), std::string::npos) << outcome.output;
}

TEST(NvrtcInAxes, CheckNamesTheSizesAtWhichAPlanSaysNothingValid) {
  const TemporaryFolder folder;
  const std::string plan = *read_file(std::filesystem::path(REKERNEL_SOURCE_DIR) /
                                      "tests/in_axes/slow_softmax/kernel.json");
  json::value changed = json::parse(plan);
  changed.at("launches").at(0).at("grid").as_array()[0] = "rows / 4096";
  std::filesystem::create_directory(folder / "bad");
  std::filesystem::copy(
      std::filesystem::path(REKERNEL_SOURCE_DIR) / "tests/in_axes/slow_softmax/kernel.cu",
      folder / "bad/kernel.cu");
  ASSERT_TRUE(write_file_atomically(folder / "bad/kernel.json", json::serialize(changed)).ok());
  const ProgramOutcome outcome =
      run_program("check " + (folder / "bad").string(), REKERNEL_SOURCE_DIR);
  EXPECT_EQ(outcome.exit_status, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("at columns 1, rows 1"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("got \"rows / 4096\" = 0"), std::string::npos) << outcome.output;
}

/// A problem that may have no other sizes; its own are small, or not.
std::string problem_file(const std::string& size) {
  return R"({"schema": 1, "id": "own", "title": "twice", "axes": {"n": )" + size +
         R"(}, "inputs": {"x": {"dtype": "f32", "shape": ["n"], "draw": {"normal": [0, 1]}}},
  "outputs": {"y": {"dtype": "f32", "shape": ["n"]}}, "definition": ["y[i] = 2 * x[i]"],
  "pytorch": "2 * x", "tolerance": "fp32"})";
}

TEST(NvrtcOwnSizes, AreEnoughForAProblem) {
  const TemporaryFolder folder;
  const std::string file = (folder / "own.json").string();
  ASSERT_TRUE(write_file_atomically(file, problem_file("100000000")).ok());
  const ProgramOutcome large = run_program("problem check " + file, REKERNEL_SOURCE_DIR);
  EXPECT_EQ(large.exit_status, 0) << large.output;
  EXPECT_NE(large.output.find("not run on the host: it has its own sizes alone"), std::string::npos)
      << large.output;
  ASSERT_TRUE(write_file_atomically(file, problem_file("1000")).ok());
  const ProgramOutcome small = run_program("problem check " + file, REKERNEL_SOURCE_DIR);
  EXPECT_EQ(small.exit_status, 0) << small.output;
  EXPECT_NE(small.output.find("runs on the host at its own sizes"), std::string::npos)
      << small.output;
}

TEST(GpuInAxes, KernelsThatAreRightAtAnySizesHaveTheBadge) {
  if (!Device::open()) GTEST_SKIP() << "no GPU";
  for (const char* name : {"slow_softmax", "row_on_chip_or_not"}) {
    const ProgramOutcome outcome =
        run_program(std::string("evaluate tests/in_axes/") + name + " --reference none --json",
                    REKERNEL_SOURCE_DIR);
    ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
    const json::value record = json::parse(outcome.output);
    EXPECT_TRUE(record.at("any_size").as_bool()) << outcome.output;
    int timed = 0;
    for (const json::value& one : record.at("evidence").at("other_sizes").as_array()) {
      EXPECT_EQ(one.at("status"), "passed");
      timed += one.as_object().contains("median_ns") ? 1 : 0;
    }
    EXPECT_EQ(timed, 3);
  }
}

TEST(GpuInAxes, AWrongResultAtAnotherSizeCostsTheBadgeAlone) {
  if (!Device::open()) GTEST_SKIP() << "no GPU";
  const TemporaryFolder folder;
  const std::filesystem::path example =
      std::filesystem::path(REKERNEL_SOURCE_DIR) / "tests/in_axes/slow_softmax";
  std::string source = *read_file(example / "kernel.cu");
  // One element is missing from rows that are shorter than the problem's own.
  const std::string loop = "for (index_t j = lane; j < columns; j += 256) {\n    sum1_";
  ASSERT_NE(source.find(loop), std::string::npos);
  source.replace(source.find(loop), loop.size(),
                 "for (index_t j = lane; j < columns - (columns < 65536); j += 256) {\n    sum1_");
  std::filesystem::create_directory(folder / "wrong");
  ASSERT_TRUE(write_file_atomically(folder / "wrong/kernel.cu", source).ok());
  std::filesystem::copy(example / "kernel.json", folder / "wrong/kernel.json");
  const ProgramOutcome outcome = run_program(
      "evaluate " + (folder / "wrong").string() + " --reference none --json", REKERNEL_SOURCE_DIR);
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const json::value record = json::parse(outcome.output);
  EXPECT_EQ(record.at("status"), "passed");
  EXPECT_FALSE(record.at("any_size").as_bool());
  EXPECT_NE(std::string(record.at("badge_notes").as_string()).find("any_size: wrong_result at "),
            std::string::npos)
      << outcome.output;
}

}  // namespace
}  // namespace rekernel

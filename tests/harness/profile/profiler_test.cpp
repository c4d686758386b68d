#include "harness/profile/profiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "harness/base/files.h"
#include "harness/problems/catalog.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

const VisibleGpu h200{0, "NVIDIA H200", 9, 0};

bool has(const ToolCommand& command, const std::string& word) {
  const auto& words = command.arguments;
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string after(const ToolCommand& command, const std::string& word) {
  const auto& words = command.arguments;
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

/// In ncu's place: it writes the log and the report, and prints the pages.
struct FakeNcu {
  std::string log;
  std::string raw;
  std::string source = "\"Address\",\"Source\",\"# Samples\"\n\"0x10\",\"EXIT\",\"5\"\n";
  bool counts = true;
  std::string plan;  ///< of the candidate that it was to run
  std::string code;
  std::vector<ToolCommand> commands;

  Result<ToolOutcome> operator()(const ToolCommand& command) {
    commands.push_back(command);
    ToolOutcome outcome;
    outcome.exit_status = 0;
    if (has(command, "--version")) {
      outcome.output = "NVIDIA (R) Nsight Compute\nVersion 2025.3.1.0 (build 1) (public-release)\n";
    } else if (has(command, "--import")) {
      outcome.output = after(command, "--page") == "raw" ? raw : source;
    } else {
      const std::filesystem::path candidate = after(command, "evaluate");
      plan = read_file(candidate / "kernel.json").value();
      code = read_file(candidate / "kernel.cu").value();
      std::ofstream(after(command, "--log-file")) << log;
      if (counts) std::ofstream(after(command, "--export")) << "report";
      outcome.last_words = "evaluate: the GPU is gone";
    }
    return outcome;
  }
};

std::string raw_page(const std::vector<std::string>& kernels) {
  std::string text =
      "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"gpu__time_duration.sum\"\n"
      "\"\",\"\",\"\",\"\",\"ns\"\n";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    text += "\"" + std::to_string(i) + "\",\"" + kernels[i] +
            "\",\"(256, 1, 1)\",\"(4096, 1, 1)\",\"1,000\"\n";
  }
  return text;
}

class Profiler : public ::testing::Test {
 protected:
  Profiler() : candidate_(scaffold_candidate(*find_problem("softmax"), "slow")) {
    for (const Step& step : candidate_.program.steps) {
      if (const auto* launch = std::get_if<KernelLaunch>(&step)) {
        names_.push_back("profiled_" + launch->kernel);
      }
    }
    ncu_.raw = raw_page(names_);
  }

  Result<Profiling> profile() {
    const auto profiler = NcuProfiler::at("/opt/ncu", std::ref(ncu_));
    if (!profiler) return profiler.error();
    EXPECT_EQ(profiler->version(), "Nsight Compute 2025.3.1.0");
    return profiler->profile(candidate_, h200);
  }

  Candidate candidate_;
  std::vector<std::string> names_;
  FakeNcu ncu_;
};

TEST_F(Profiler, AsksForTheCandidatesKernelsAlone) {
  const auto profiling = profile();
  ASSERT_TRUE(profiling) << profiling.error().message;
  ASSERT_TRUE(profiling->profile) << profiling->unavailable;
  EXPECT_EQ(profiling->profile->launches.size(), names_.size());
  EXPECT_EQ(profiling->profile->least_bytes, find_problem("softmax")->min_bytes);
  const ToolCommand& counted = ncu_.commands.at(1);
  EXPECT_TRUE(after(counted, "--kernel-name").starts_with("regex:^("));
  for (const std::string& name : names_) {
    EXPECT_NE(after(counted, "--kernel-name").find(name), std::string::npos);
  }
  const auto written = parse_candidate(ncu_.plan, {{Language::cuda, ncu_.code}}, "what ncu ran");
  ASSERT_TRUE(written) << written.error().message;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const std::string& planned = profiling->profile->launches[i].kernel;
    EXPECT_EQ("profiled_" + planned, names_[i]);
    EXPECT_EQ(written->program.compile.defines.at(planned), names_[i]);
  }
  EXPECT_TRUE(has(counted, "--once"));
  const auto& environment = *counted.environment;
  EXPECT_EQ(std::count(environment.begin(), environment.end(), "REKERNEL_SANDBOX=off"), 1);
  EXPECT_EQ(profiling->profile->launches.back().hottest.at(0).text, "EXIT");
}

TEST_F(Profiler, RenamesTheKernelsOfAPlanInAxesForItsOwnSizes) {
  const auto in_axes = load_candidate(std::filesystem::path(REKERNEL_SOURCE_DIR) /
                                      "tests/in_axes/row_on_chip_or_not");
  ASSERT_TRUE(in_axes) << in_axes.error().message;
  ASSERT_TRUE(in_axes->is_in_axes());
  candidate_ = *in_axes;
  EXPECT_TRUE(profile());
  const auto written = parse_candidate(ncu_.plan, {{Language::cuda, ncu_.code}}, "what ncu ran");
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->program.steps.size(), in_axes->program.steps.size());
  int launches = 0;
  for (const Step& step : written->program.steps) {
    const auto* launch = std::get_if<KernelLaunch>(&step);
    if (!launch) continue;
    ++launches;
    EXPECT_TRUE(launch->kernel.starts_with("profiled_")) << launch->kernel;
  }
  EXPECT_GT(launches, 0);
}

TEST_F(Profiler, GivesAStrangersProblemAlong) {
  EXPECT_TRUE(profile()->profile);
  EXPECT_FALSE(has(ncu_.commands.at(1), "--problem"));
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "twice.json") << R"({"schema": 1, "id": "twice_as_much",
    "title": "y = 2x", "axes": {"n": 1024}, "tolerance": "fp32", "pytorch": "2 * x",
    "inputs": {"x": {"dtype": "f32", "shape": ["n"], "draw": {"normal": [0, 1]}}},
    "outputs": {"y": {"dtype": "f32", "shape": ["n"]}}, "definition": ["y[i] = 2 * x[i]"]})";
  const auto added = add_problems(folder.path());
  ASSERT_TRUE(added) << added.error().message;
  candidate_ = scaffold_candidate(*added->front(), "slow");
  ncu_.raw = raw_page({"profiled_make_y"});
  ncu_.commands.clear();
  const auto profiling = profile();
  ASSERT_TRUE(profiling) << profiling.error().message;
  EXPECT_TRUE(profiling->profile) << profiling->unavailable;
  EXPECT_EQ(std::filesystem::path(after(ncu_.commands.at(1), "--problem")).filename(),
            "problem.json");
}

TEST_F(Profiler, SaysWhatKeepsEveryCandidateFromBeingProfiled) {
  ncu_.log =
      "==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to "
      "access NVIDIA GPU Performance Counters on the target device 0.\n";
  const auto refused = profile();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("lets only administrators read"), std::string::npos);
  ncu_.log = "==ERROR== Failed to find metric smsp__new.sum\n";
  const auto failed = profile();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message,
            "Nsight Compute 2025.3.1.0: Failed to find metric smsp__new.sum");
}

TEST_F(Profiler, SaysWhyThisCandidateHasNone) {
  ncu_.counts = false;
  const auto uncounted = profile();
  ASSERT_TRUE(uncounted) << uncounted.error().message;
  EXPECT_EQ(uncounted->unavailable, "no launch was counted: evaluate: the GPU is gone");
  ncu_.counts = true;
  names_.push_back(names_.front());
  ncu_.raw = raw_page(names_);
  const auto shared = profile();
  ASSERT_TRUE(shared) << shared.error().message;
  EXPECT_NE(shared->unavailable.find("a kernel of the judge's own is called"), std::string::npos);
}

TEST_F(Profiler, NamesAPageThatItCannotRead) {
  ncu_.raw = "something else\n";
  const auto profiling = profile();
  ASSERT_FALSE(profiling);
  EXPECT_NE(profiling.error().message.find("page raw: no row of names"), std::string::npos);
}

TEST(NcuProfiler, RefusesWhatIsNoNcu) {
  const auto other = NcuProfiler::at("/bin/echo", [](const ToolCommand&) {
    ToolOutcome outcome;
    outcome.exit_status = 0;
    outcome.output = "hello\n";
    return Result<ToolOutcome>(outcome);
  });
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("/bin/echo --version: expected"), std::string::npos);
}

}  // namespace
}  // namespace rekernel

// Kernels that are slightly wrong must not pass, and kernels that are right in any style must: what
// README.md of this folder describes. That every mutant applies and compiles is tested anywhere;
// the verdicts need a GPU.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <boost/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "harness/compile.h"
#include "harness/cuda.h"
#include "harness/files.h"
#include "harness/mutant.h"
#include "ops/catalog.h"
#include "tests/evaluate_program.h"
#include "tests/mutants/mutants_record.h"
#include "tests/reference/temporary_folder.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

const fs::path root = REKERNEL_SOURCE_DIR;

/// What the tests on the GPU found in this process. With REKERNEL_RECORD_MUTANTS in the environment
/// it goes into results/<gpu>/mutants.json, and the page is brought up to date.
class Recording : public testing::Environment {
 public:
  static Recording& instance() {
    static auto* const recording = new Recording;  // owned by GoogleTest
    return *recording;
  }

  MutantsRecord measured;

  void TearDown() override {
    if (!::getenv("REKERNEL_RECORD_MUTANTS")) return;
    if (!measured.device_name.empty()) {
      const Result<Ok> updated = update_mutants_record(root, measured);
      ASSERT_TRUE(updated.ok()) << updated.error().message;
    }
    const Result<std::string> page = generated_page(root);
    ASSERT_TRUE(page.ok()) << page.error().message;
    ASSERT_TRUE(write_file_atomically(root / "tests/mutants/README.md", *page).ok());
  }
};

const auto* const recording = testing::AddGlobalTestEnvironment(&Recording::instance());

template <class Thing>
std::string name_of(const testing::TestParamInfo<Thing>& info) {
  std::string name = info.param.id;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

/// Compiles for the lowest target that the candidate claims, and holds the plan against the result.
Result<Ok> compile(const Candidate& candidate) {
  static const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  Result<CompiledProgram> compiled =
      compiler->compile(candidate.program, problem_header(*find_problem(candidate.problem)),
                        to_string(candidate.arch));
  if (!compiled) return compiled.error();
  return check_launches(candidate.program, *compiled, candidate.name);
}

/// A base with the given source, and a mutant of it.
class MutantFiles : public testing::Test {
 protected:
  void write_base(const std::string& source, const std::string& plan) {
    ASSERT_TRUE(write_file_atomically(folder_.path() / "kernel.cu", source).ok());
    ASSERT_TRUE(write_file_atomically(folder_.path() / "kernel.json", plan).ok());
    mutant_.base = folder_.path();
  }

  Mutant mutant_;

 private:
  TemporaryFolder folder_;
};

TEST_F(MutantFiles, ReplacesWhatOccursOnce) {
  write_base("one two three", "{}");
  mutant_.replacements = {{"two", "2"}, {"2 three", "3"}};
  EXPECT_EQ(mutate(mutant_)->source, "one 3");
  mutant_.replacements = {{"e", "x"}};
  EXPECT_FALSE(mutate(mutant_).ok());
  mutant_.replacements = {{"four", "x"}};
  EXPECT_FALSE(mutate(mutant_).ok());
  mutant_.replacements = {{"two", "two"}};
  EXPECT_FALSE(mutate(mutant_).ok());
}

TEST_F(MutantFiles, MergesThePlan) {
  write_base("", R"({"a": {"b": 1, "c": 2}, "d": [1, 2], "e": 3})");
  mutant_.plan_patch = boost::json::parse(R"({"a": {"b": null, "f": 4}, "d": [5]})");
  const Result<MutatedFiles> files = mutate(mutant_);
  ASSERT_TRUE(files.ok()) << files.error().message;
  EXPECT_EQ(boost::json::parse(files->plan),
            boost::json::parse(R"({"a": {"c": 2, "f": 4}, "d": [5], "e": 3})"));
  mutant_.plan_patch = boost::json::parse(R"({"e": 3})");
  EXPECT_FALSE(mutate(mutant_).ok());
}

Evaluation evaluation_with(Status status, bool robust) {
  Evaluation evaluation;
  evaluation.status = status;
  evaluation.robust = robust;
  return evaluation;
}

TEST(MutantOutcome, IsCaughtByItsStatusOrByTheLossOfABadge) {
  Mutant mutant;
  mutant.expected = {Status::wrong_result};
  EXPECT_TRUE(mutant_outcome(mutant, evaluation_with(Status::wrong_result, false)).as_it_must);
  EXPECT_FALSE(mutant_outcome(mutant, evaluation_with(Status::crashed, false)).as_it_must);
  EXPECT_FALSE(mutant_outcome(mutant, evaluation_with(Status::passed, true)).as_it_must);
  mutant.expected = {Status::passed};
  mutant.refused_badges = {"robust"};
  EXPECT_TRUE(mutant_outcome(mutant, evaluation_with(Status::passed, false)).as_it_must);
  EXPECT_FALSE(mutant_outcome(mutant, evaluation_with(Status::passed, true)).as_it_must);
}

TEST(MutantOutcome, NamesTheCheckThatSpoke) {
  Evaluation evaluation = evaluation_with(Status::wrong_result, false);
  evaluation.message =
      "rms error 1 at rms(truth) 2: expected a ratio of at most 3 (in a timed run)";
  EXPECT_EQ(mutant_outcome({}, evaluation).caught_by, "rms error in a timed run");
  evaluation.message = "rows sum to 1: violated by 2, expected at most 0.001";
  EXPECT_EQ(mutant_outcome({}, evaluation).caught_by, "rows sum to 1");
  evaluation.message = "3 of 9 elements outside the tolerance; first c[0, 0] = 1, expected 2";
  EXPECT_EQ(mutant_outcome({}, evaluation).caught_by, "tolerance of an element");
  EXPECT_EQ(mutant_outcome({}, evaluation_with(Status::crashed, false)).caught_by, "crashed");
}

TEST(MutantOutcome, AnHonestKernelMustHaveItsBadges) {
  HonestKernel kernel;
  kernel.badges = {"robust"};
  EXPECT_TRUE(honest_outcome(kernel, evaluation_with(Status::passed, true)).as_it_must);
  EXPECT_FALSE(honest_outcome(kernel, evaluation_with(Status::passed, false)).as_it_must);
  EXPECT_FALSE(honest_outcome(kernel, evaluation_with(Status::wrong_result, false)).as_it_must);
}

TEST(Mutants, ApplyToTheirBases) {
  std::set<std::string> ids;
  for (const Mutant& mutant : all_mutants(root)) {
    EXPECT_TRUE(ids.insert(mutant.id).second) << mutant.id << ": twice";
    const Result<Candidate> candidate = mutated_candidate(mutant);
    ASSERT_TRUE(candidate.ok()) << mutant.id << ": " << candidate.error().message;
    EXPECT_TRUE(mutant.id.starts_with(candidate->problem + "/")) << mutant.id;
  }
}

TEST(Mutants, AreTenThatMustNotPassForEveryProblem) {
  std::map<std::string, int> rejected;
  for (const Mutant& mutant : all_mutants(root)) {
    const auto& expected = mutant.expected;
    if (std::count(expected.begin(), expected.end(), Status::passed) > 0) continue;
    ++rejected[mutant.id.substr(0, mutant.id.find('/'))];
  }
  for (const Problem& problem : catalog()) EXPECT_GE(rejected[problem.id], 10) << problem.id;
}

TEST(Mutants, TheirRecordIsOfWhatIsHere) {
  for (const fs::path& path : recorded_mutants(root)) {
    const Result<MutantsRecord> record = load_mutants_record(path);
    ASSERT_TRUE(record.ok()) << record.error().message;
    std::map<std::string, std::string> sha256;
    for (const Outcome& one : record->mutants) sha256[one.id] = one.sha256;
    for (const Outcome& one : record->honest) sha256[one.id] = one.sha256;
    std::size_t things = 0;
    for (const Mutant& mutant : all_mutants(root)) {
      ++things;
      EXPECT_EQ(sha256[mutant.id], candidate_sha256(*mutated_candidate(mutant)))
          << path << ": " << mutant.id << ": record it anew";
    }
    for (const HonestKernel& kernel : all_honest_kernels(root)) {
      ++things;
      EXPECT_EQ(sha256[kernel.id], candidate_sha256(*load_candidate(kernel.folder)))
          << path << ": " << kernel.id << ": record it anew";
    }
    EXPECT_EQ(sha256.size(), things) << path;
  }
}

TEST(Mutants, ThePageShowsTheRecords) {
  if (::getenv("REKERNEL_RECORD_MUTANTS")) GTEST_SKIP() << "being written";
  const Result<std::string> expected = generated_page(root);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  EXPECT_EQ(*read_file(root / "tests/mutants/README.md"), *expected);
}

class NvrtcMutants : public testing::TestWithParam<Mutant> {};

TEST_P(NvrtcMutants, Compiles) {
  const Result<Candidate> candidate = mutated_candidate(GetParam());
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  const Result<Ok> compiled = compile(*candidate);
  EXPECT_TRUE(compiled.ok()) << compiled.error().message;
}

INSTANTIATE_TEST_SUITE_P(Nvrtc, NvrtcMutants, testing::ValuesIn(all_mutants(root)),
                         name_of<Mutant>);

class NvrtcHonest : public testing::TestWithParam<HonestKernel> {};

TEST_P(NvrtcHonest, Compiles) {
  const Result<Candidate> candidate = load_candidate(GetParam().folder);
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  EXPECT_EQ(candidate->problem + "/" + candidate->name, GetParam().id);
  const Result<Ok> compiled = compile(*candidate);
  EXPECT_TRUE(compiled.ok()) << compiled.error().message;
}

INSTANTIATE_TEST_SUITE_P(Nvrtc, NvrtcHonest, testing::ValuesIn(all_honest_kernels(root)),
                         name_of<HonestKernel>);

/// The evaluation of a candidate folder. References and many timed samples would say nothing about
/// right and wrong; every check is made. Fails the test where there is no verdict.
std::optional<Evaluation> judge(const fs::path& folder) {
  const Verdict verdict = run_evaluate(folder, "--reference none --samples 10 --deadline 20");
  std::optional<Evaluation> evaluation = verdict.evaluation();
  EXPECT_TRUE(evaluation.has_value()) << verdict.output;
  return evaluation;
}

/// Why this machine cannot run a candidate for `arch`; empty if it can. Notes the device.
std::string cannot_run(Arch arch) {
  const Result<Device> device = Device::open();
  if (!device) return "no GPU";
  const DeviceProperties& properties = device->properties();
  if (!runs_on(arch, properties.major, properties.minor)) return properties.name + " is too old";
  Recording::instance().measured.device_name = properties.name;
  return {};
}

class GpuMutants : public testing::TestWithParam<Mutant> {};

TEST_P(GpuMutants, IsCaught) {
  const Mutant& mutant = GetParam();
  const Result<MutatedFiles> files = mutate(mutant);
  ASSERT_TRUE(files.ok()) << files.error().message;
  if (const std::string why = cannot_run(mutated_candidate(mutant)->arch); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder.path() / "kernel.cu", files->source).ok());
  ASSERT_TRUE(write_file_atomically(folder.path() / "kernel.json", files->plan).ok());
  const std::optional<Evaluation> evaluation = judge(folder.path());
  if (!evaluation) return;
  const Outcome outcome = mutant_outcome(mutant, *evaluation);
  Recording::instance().measured.mutants.push_back(outcome);
  EXPECT_TRUE(outcome.as_it_must) << mutant.what << "\ngot " << outcome.status << ": "
                                  << outcome.message;
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuMutants, testing::ValuesIn(all_mutants(root)), name_of<Mutant>);

class GpuHonest : public testing::TestWithParam<HonestKernel> {};

TEST_P(GpuHonest, Passes) {
  const HonestKernel& kernel = GetParam();
  const Result<Candidate> candidate = load_candidate(kernel.folder);
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  if (const std::string why = cannot_run(candidate->arch); !why.empty()) GTEST_SKIP() << why;
  const std::optional<Evaluation> evaluation = judge(kernel.folder);
  if (!evaluation) return;
  const Outcome outcome = honest_outcome(kernel, *evaluation);
  Recording::instance().measured.honest.push_back(outcome);
  EXPECT_TRUE(outcome.as_it_must) << "got " << outcome.status << ": " << outcome.message;
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuHonest, testing::ValuesIn(all_honest_kernels(root)),
                         name_of<HonestKernel>);

}  // namespace
}  // namespace rekernel

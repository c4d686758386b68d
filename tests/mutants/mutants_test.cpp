// Kernels that are slightly wrong must not pass, and kernels that are right in any style must: what
// README.md of this folder describes. Whether every mutant applies, and whether those compile of
// which there is no verdict yet, is tested anywhere; the verdicts need a GPU.

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "harness/audit/errors.h"
#include "harness/audit/mutant.h"
#include "harness/audit/mutants_page.h"
#include "harness/base/files.h"
#include "harness/compile/compile.h"
#include "harness/gpu/cuda.h"
#include "harness/problems/catalog.h"
#include "tests/evaluate_program.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

const fs::path root = REKERNEL_SOURCE_DIR;

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
  for (const Problem& problem : published_problems())
    EXPECT_GE(rejected[problem.id], 10) << problem.id;
}

/// Digests of candidates that some record has a verdict on: they compiled, as they are now.
std::set<std::string> judged_candidates() {
  std::set<std::string> digests;
  for (const fs::path& path : recorded_errors(root)) {
    const Result<ErrorsRecord> record = load_errors(path);
    if (!record) ADD_FAILURE() << record.error().message;
    for (const ErrorRow& row : record->rows) {
      const std::optional<Status> status = status_from_string(row.status);
      if (status && *status != Status::invalid_plan && *status != Status::compile_failed) {
        digests.insert(row.sha256);
      }
    }
  }
  return digests;
}

/// Hundreds of compilations would repeat what the records say.
TEST(NvrtcMutants, CompileUnlessTheyWereJudged) {
  const std::set<std::string> judged = judged_candidates();
  EXPECT_FALSE(judged.empty());
  for (const Mutant& mutant : all_mutants(root)) {
    const Result<Candidate> candidate = mutated_candidate(mutant);
    ASSERT_TRUE(candidate.ok()) << mutant.id << ": " << candidate.error().message;
    if (judged.contains(candidate_sha256(*candidate))) continue;
    const Result<Ok> compiled = compile(*candidate);
    EXPECT_TRUE(compiled.ok()) << mutant.id << ": " << compiled.error().message;
  }
}

TEST(NvrtcHonest, CompileUnlessTheyWereJudged) {
  const std::set<std::string> judged = judged_candidates();
  for (const HonestKernel& kernel : all_honest_kernels(root)) {
    const Result<Candidate> candidate = load_candidate(kernel.folder);
    ASSERT_TRUE(candidate.ok()) << candidate.error().message;
    EXPECT_EQ(candidate->problem + "/" + candidate->name, kernel.id);
    if (judged.contains(candidate_sha256(*candidate))) continue;
    const Result<Ok> compiled = compile(*candidate);
    EXPECT_TRUE(compiled.ok()) << kernel.id << ": " << compiled.error().message;
  }
}

/// The evaluation of a candidate folder. References and many timed samples would say nothing about
/// right and wrong; every check is made. Fails the test where there is no verdict.
std::optional<Evaluation> judge(const fs::path& folder) {
  const Verdict verdict = run_evaluate(folder, "--reference none --samples 10 --deadline 20");
  std::optional<Evaluation> evaluation = verdict.evaluation();
  EXPECT_TRUE(evaluation.has_value()) << verdict.output;
  return evaluation;
}

/// What became of it, as a record holds it.
ErrorRow row_of(const Evaluation& evaluation) { return error_rows({}, evaluation).front(); }

/// Why this machine cannot run a candidate for `arch`; empty if it can.
std::string cannot_run(Arch arch) {
  const Result<Device> device = Device::open();
  if (!device) return "no GPU";
  const DeviceProperties& properties = device->properties();
  if (!runs_on(arch, properties.major, properties.minor)) return properties.name + " is too old";
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
  const JudgeOutcome outcome = mutant_outcome(mutant, row_of(*evaluation));
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
  const JudgeOutcome outcome = honest_outcome(kernel, row_of(*evaluation));
  EXPECT_TRUE(outcome.as_it_must) << "got " << outcome.status << ": " << outcome.message;
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuHonest, testing::ValuesIn(all_honest_kernels(root)),
                         name_of<HonestKernel>);

}  // namespace
}  // namespace rekernel

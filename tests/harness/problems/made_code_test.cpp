// The device code that is made of every problem compiles.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "harness/base/parallel.h"
#include "harness/compile/compile.h"
#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

struct Job {
  std::string what;
  const Program* program;
  const Problem* problem;
  std::string failure = {};
};

std::vector<Job> jobs_of(std::span<const Problem> problems) {
  std::vector<Job> jobs;
  const auto add = [&](const Problem& problem, const std::string& what, const Program& program) {
    if (!program.steps.empty()) jobs.push_back({problem.id + ": " + what, &program, &problem});
  };
  for (const Problem& problem : problems) {
    add(problem, "truth", problem.device_oracle);
    add(problem, "scaffold", problem.scaffold);
    add(problem, "made inputs", problem.making);
    for (const Invariant& invariant : problem.invariants) {
      add(problem, invariant.name, invariant.program);
    }
  }
  return jobs;
}

void expect_compiled(std::vector<Job> jobs, const std::string& target) {
  const Result<Compiler> compiler = Compiler::load();
  ASSERT_TRUE(compiler.ok()) << compiler.error().message;
  if (!compiler->knows(target)) GTEST_SKIP() << "NVRTC does not know " << target;
  for_each_in_parallel(jobs.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    Job& job = jobs[i];
    const auto compiled = compiler->compile(*job.program, problem_header(*job.problem), target);
    const Result<Ok> fits =
        compiled ? check_launches(*job.program, *compiled, target) : Result<Ok>(compiled.error());
    if (!fits) job.failure = fits.error().message;
  });
  for (const Job& job : jobs) EXPECT_EQ(job.failure, "") << job.what;
}

// Twenty seconds of a processor for all of them; other targets get the published ones.
TEST(NvrtcMadeCode, OfEveryProblemCompiles) { expect_compiled(jobs_of(catalog()), "sm_90a"); }

TEST(NvrtcMadeCode, OfPublishedProblemsCompilesForEveryTarget) {
  for (const std::string& target : targets_of("sm_80")) {
    if (target != "sm_90a") expect_compiled(jobs_of(published_problems()), target);
  }
}

}  // namespace
}  // namespace rekernel

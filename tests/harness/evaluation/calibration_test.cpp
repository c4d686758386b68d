#include "harness/evaluation/calibration.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/compile/compile.h"
#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

TEST(Calibration, KnownWorksAreCandidatesOfEveryProblem) {
  for (const Problem& problem : catalog()) {
    std::set<std::string> names;
    for (const KnownWork& work : known_works(problem)) {
      names.insert(work.name);
      const Result<Candidate> read =
          parse_candidate(candidate_json(work.candidate), work.candidate.program.source, "work");
      EXPECT_TRUE(read) << problem.id << ": " << read.error().message;
    }
    EXPECT_EQ(names.size(), 4u) << problem.id << ": two works have one name";
  }
}

TEST(Calibration, CopiesStayWithinTheirTensors) {
  for (const Problem& problem : catalog()) {
    int moves = 0;
    for (const KnownWork& work : known_works(problem)) {
      const auto& launch = std::get<KernelLaunch>(work.candidate.program.steps.at(0));
      if (launch.kernel != "copy" && launch.kernel != "copy_to_own") continue;
      ++moves;
      const std::int64_t bytes =
          16 * std::get<std::int64_t>(std::get<ScalarArgument>(launch.args.back()));
      EXPECT_GT(bytes, 0);
      for (const Argument& argument : launch.args) {
        const auto* buffer = std::get_if<BufferArgument>(&argument);
        if (!buffer) continue;
        EXPECT_LE(bytes, problem.find_tensor(buffer->buffer)->bytes()) << problem.id;
      }
    }
    EXPECT_EQ(moves, 2) << problem.id << ": a small one and one of all that there is";
  }
}

TEST(NvrtcCalibration, KnownWorksCompile) {
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) GTEST_SKIP() << compiler.error().message;
  const Problem& problem = catalog().front();
  for (const KnownWork& work : known_works(problem)) {
    const Result<CompiledProgram> compiled =
        compiler->compile(work.candidate.program, problem_header(problem), "sm_80");
    ASSERT_TRUE(compiled) << compiled.error().message;
    EXPECT_TRUE(check_launches(work.candidate.program, *compiled, "work"));
  }
}

}  // namespace
}  // namespace rekernel

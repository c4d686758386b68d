#include "harness/project/scaffold_in_axes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/problems/catalog.h"
#include "harness/problems/other_sizes.h"
#include "harness/problems/problem_file.h"
#include "harness/problems/sizes.h"
#include "ops/definition/definition.h"

namespace rekernel {
namespace {

TEST(ScaffoldInAxes, HasExpressionsForGridsAndWorkspaces) {
  const std::optional<Candidate> made = scaffold_in_axes(*find_problem("softmax"), "slow");
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->is_in_axes());
  const std::string plan = candidate_json(*made);
  EXPECT_NE(plan.find(R"("workspace": {"largest": "4 * rows", "total": "4 * rows"})"),
            std::string::npos)
      << plan;
  EXPECT_NE(plan.find(R"json("grid": ["ceil_div(rows * columns, 256)"])json"), std::string::npos)
      << plan;
}

/// At the problem's own sizes it is the slow candidate; at others its blocks cover all elements.
TEST(ScaffoldInAxes, ReachesAllElementsAtEverySize) {
  int found = 0;
  for (const Problem& problem : catalog()) {
    const std::optional<Candidate> made = scaffold_in_axes(problem, "slow");
    if (!made) continue;
    ++found;
    Candidate numbers = *made;
    numbers.written.clear();
    EXPECT_EQ(candidate_json(numbers), candidate_json(scaffold_candidate(problem, "slow")));
    for (const Problem& instance : drawn_instances(problem, 2)) {
      const Result<Candidate> sized = at_sizes(*made, instance);
      ASSERT_TRUE(sized) << sized.error().message;
      const auto& last = std::get<KernelLaunch>(sized->program.steps.back());
      std::int64_t threads = last.block[0];
      for (const GridExtent& extent : last.grid) threads *= extent.count;
      // A tile has 64 * 64 elements for its 256 threads; a scan's thread has a line.
      const std::int64_t elements = instance.largest(Role::output).elements();
      const bool is_scan = std::any_of(problem.definition->statements().begin(),
                                       problem.definition->statements().end(),
                                       [](const auto& one) { return one.scan || one.recurrence; });
      EXPECT_TRUE(is_scan || threads * 16 >= elements) << problem.id;
    }
  }
  EXPECT_GE(found, 40);
}

TEST(ScaffoldInAxes, IsNoneWhereTheCodeIsForTheOwnSizesAlone) {
  const std::string beginning = R"({"schema": 1, "id": "own", "title": "t", "axes": {"n": )";
  const std::string tensors = R"(}, "other_sizes": {"n": [1, 5000]},
      "inputs": {"x": {"dtype": "f32", "shape": ["n"], "draw": {"normal": [0, 1]}}}, )";
  const auto problem = [&](const std::string& size, const std::string& rest) {
    return *parse_problem(beginning + size + tensors + rest, "own.json", "own", "g");
  };
  const std::string sum = R"json("outputs": {"y": {"dtype": "f32", "shape": []}},
      "definition": ["y = sum(i) x[i]"], "pytorch": "x.sum()", "tolerance": "fp32"})json";
  EXPECT_TRUE(scaffold_in_axes(problem("3000", sum), "slow"));
  // The long sum is cut into slices.
  EXPECT_FALSE(scaffold_in_axes(problem("100000000", sum), "slow"));
}

}  // namespace
}  // namespace rekernel

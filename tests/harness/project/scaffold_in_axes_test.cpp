#include "harness/project/scaffold_in_axes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/problems/catalog.h"
#include "harness/problems/other_sizes.h"
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

TEST(ScaffoldInAxes, HasTilesOfAProduct) {
  const std::optional<Candidate> made = scaffold_in_axes(*find_problem("matmul_fp32"), "slow");
  ASSERT_TRUE(made);
  const std::string plan = candidate_json(*made);
  EXPECT_NE(plan.find(R"json("grid": ["ceil_div(n, 64)", "ceil_div(m, 64)", "1"])json"),
            std::string::npos)
      << plan;
}

TEST(ScaffoldInAxes, IsNoneWhereTheCodeIsForTheOwnSizesAlone) {
  // A sum of 10^8 terms, which is cut into slices; scores that are made in portions.
  EXPECT_FALSE(scaffold_in_axes(*find_problem("frobenius_norm"), "slow"));
  EXPECT_FALSE(scaffold_in_axes(*find_problem("attention_fp16"), "slow"));
}

}  // namespace
}  // namespace rekernel

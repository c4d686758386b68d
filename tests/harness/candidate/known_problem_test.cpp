#include "harness/candidate/known_problem.h"

#include <gtest/gtest.h>

#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

TEST(KnownProblem, IsOneOfTheCatalogue) {
  for (const Problem& problem : catalog()) EXPECT_EQ(*known_problem(problem.id), &problem);
}

TEST(KnownProblem, TheErrorNamesTheNearestAndAll) {
  const std::string near = known_problem("sofmax").error().message;
  EXPECT_TRUE(
      near.starts_with("unknown problem 'sofmax' (did you mean 'softmax'?): expected one of "
                       "matmul_fp32, conv2d, "))
      << near;
  const std::string far = known_problem("poetry").error().message;
  EXPECT_TRUE(far.starts_with("unknown problem 'poetry': expected one of ")) << far;
  EXPECT_TRUE(known_problem("\x1b[2J").error().message.starts_with("unknown problem '?[2J'"));
}

}  // namespace
}  // namespace rekernel

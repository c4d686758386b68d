#include "harness/candidate/known_problem.h"

#include <gtest/gtest.h>

#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

TEST(KnownProblem, IsOneOfTheCatalogue) {
  for (const Problem& problem : catalog()) {
    EXPECT_EQ(*known_problem(problem.id), find_problem(problem.id));
  }
}

TEST(KnownProblem, TheErrorNamesTheNearest) {
  EXPECT_EQ(known_problem("sofmax").error().message,
            "unknown problem 'sofmax' (did you mean 'softmax'?): `rekernel list` names them all");
  EXPECT_EQ(known_problem("poetry").error().message,
            "unknown problem 'poetry': `rekernel list` names them all");
  EXPECT_TRUE(known_problem("\x1b[2J").error().message.starts_with("unknown problem '?[2J'"));
}

}  // namespace
}  // namespace rekernel

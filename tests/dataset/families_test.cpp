#include "harness/dataset/families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

TEST(Families, AProblemAndItsVariationsAreInOneSplit) {
  EXPECT_EQ(family_of("conv2d_relu_maxpool"), family_of("conv2d"));
  EXPECT_EQ(family_of("attention_fp16_causal"), family_of("attention_fp16"));
  EXPECT_EQ(family_of("matmul_fp16"), family_of("matmul_fp32"));
  EXPECT_EQ(family_of("a_problem_of_its_own"), "a_problem_of_its_own");
  for (const Problem& problem : catalog()) {
    EXPECT_EQ(split_of(problem.id), split_of(problem.id));
    for (const Problem& other : catalog()) {
      if (family_of(problem.id) != family_of(other.id)) continue;
      EXPECT_EQ(split_of(problem.id), split_of(other.id)) << problem.id << ", " << other.id;
    }
  }
}

TEST(Families, EveryListedProblemIsThere) {
  for (const Family& family : listed_families()) {
    for (const std::string_view pattern : family.problems) {
      const bool any = std::any_of(catalog().begin(), catalog().end(), [&](const Problem& one) {
        return pattern.ends_with('*') ? one.id.starts_with(pattern.substr(0, pattern.size() - 1))
                                      : one.id == pattern;
      });
      EXPECT_TRUE(any) << family.name << ": " << pattern;
    }
  }
}

TEST(Families, NoProblemIsInTwo) {
  std::set<std::string> names;
  for (const Family& family : listed_families()) EXPECT_TRUE(names.insert(family.name).second);
  // The first family whose pattern fits counts: a later one that fits too would be lost silently.
  for (const Problem& problem : catalog()) {
    int fitting = 0;
    for (const Family& family : listed_families()) {
      for (std::string_view pattern : family.problems) {
        const bool fits = pattern.ends_with('*')
                              ? problem.id.starts_with(pattern.substr(0, pattern.size() - 1))
                              : problem.id == pattern;
        if (fits) {
          ++fitting;
          break;
        }
      }
    }
    EXPECT_LE(fitting, 1) << problem.id;
  }
}

TEST(Families, EverySplitHasAFamilyAndTheRestIsSpread) {
  std::set<Split> listed, others;
  for (const Family& family : listed_families()) listed.insert(family.split);
  for (int i = 0; i < 100; ++i) others.insert(split_of("problem_" + std::to_string(i)));
  EXPECT_EQ(listed.size(), 3u);
  EXPECT_EQ(others.size(), 3u);
}

TEST(Families, NameTheirProblemsOfKernelBench) {
  const auto keys = contamination_keys("softmax");
  EXPECT_NE(std::find(keys.begin(), keys.end(), "kernelbench/level1/23"), keys.end());
  const auto convolution = contamination_keys("conv2d_relu_maxpool");
  EXPECT_NE(std::find(convolution.begin(), convolution.end(), "kernelbench/level1/50"),
            convolution.end());
  EXPECT_TRUE(contamination_keys("a_problem_of_its_own").empty());
}

}  // namespace
}  // namespace rekernel

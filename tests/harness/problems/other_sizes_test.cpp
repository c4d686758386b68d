#include "harness/problems/other_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/problems/catalog.h"
#include "harness/problems/problem_file.h"
#include "harness/problems/sizes.h"

namespace rekernel {
namespace {

std::vector<Sizes> sizes_in(const std::vector<Problem>& instances) {
  std::vector<Sizes> all;
  for (const Problem& one : instances) all.push_back(sizes_of(one));
  return all;
}

Problem problem_of_axes(const std::string& axes, const std::string& rest) {
  const std::string text = R"({"schema": 1, "id": "p", "title": "t", "axes": )" + axes + rest +
                           R"(, "inputs": {"x": {"dtype": "f32", "shape": ["n", "m"],
      "draw": {"normal": [0, 1]}}}, "outputs": {"y": {"dtype": "f32", "shape": ["n", "m"]}},
      "definition": ["y[i, j] = 2 * x[i, j]"], "pytorch": "2 * x", "tolerance": "fp32"})";
  Result<Problem> problem = parse_problem(text, "p.json", "p", "g");
  if (!problem) throw std::runtime_error(problem.error().message);
  return *std::move(problem);
}

bool is_prime(std::int64_t number) {
  for (std::int64_t i = 2; i < number; ++i) {
    if (number % i == 0) return false;
  }
  return number > 1;
}

TEST(OtherSizes, EqualSeedsDrawEqualSizesAndOthersDoNot) {
  const Problem& softmax = *find_problem("softmax");
  const std::vector<Sizes> first = sizes_in(drawn_instances(softmax, 5));
  EXPECT_EQ(first.size(), judged_sizes);
  EXPECT_EQ(sizes_in(drawn_instances(softmax, 5)), first);
  EXPECT_NE(sizes_in(drawn_instances(softmax, 6)), first);
}

TEST(OtherSizes, EdgesOnesAndPrimesAreAmongThem) {
  const Problem problem = problem_of_axes(R"({"n": 4096, "m": 4096})",
                                          R"(, "other_sizes": {"n": [1, 90], "m": [3, 50]})");
  bool small_one = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<Sizes> drawn = sizes_in(drawn_instances(problem, seed));
    ASSERT_EQ(drawn.size(), judged_sizes);
    EXPECT_EQ(drawn[0], (Sizes{{"n", 1}, {"m", 3}}));
    EXPECT_TRUE(drawn[1].at("n") == 1 || drawn[1].at("n") == 90) << sizes_text(drawn[1]);
    EXPECT_TRUE(drawn[1].at("m") == 3 || drawn[1].at("m") == 50) << sizes_text(drawn[1]);
    small_one |= drawn[2].at("n") == 1;
    EXPECT_TRUE(is_prime(drawn[3].at("m"))) << sizes_text(drawn[3]);
    EXPECT_EQ(std::set<Sizes>(drawn.begin(), drawn.end()).size(), drawn.size());
  }
  EXPECT_TRUE(small_one);
}

/// Constraints hold because the reader of problems accepts the sizes; ranges and work are ours.
TEST(OtherSizes, AreWithinRangesOfEveryPublishedProblem) {
  for (const Problem& problem : published_problems()) {
    std::vector<Problem> all = drawn_instances(problem, 1);
    EXPECT_GE(all.size(), 3u) << problem.id;
    const std::vector<Problem> fixed = fixed_instances(problem);
    EXPECT_GE(fixed.size(), 1u) << problem.id;
    all.insert(all.end(), fixed.begin(), fixed.end());
    for (const Problem& one : all) {
      const Sizes sizes = sizes_of(one);
      EXPECT_NE(sizes, sizes_of(problem)) << problem.id;
      for (const auto& [axis, size] : sizes) {
        const auto [low, high] = problem.other_sizes.at(axis);
        EXPECT_TRUE(size >= low && size <= high) << problem.id << ": " << sizes_text(sizes);
      }
      EXPECT_LE(one.operations, std::max<std::int64_t>(problem.operations, 1'000'000'000))
          << problem.id << ": " << sizes_text(sizes);
    }
  }
}

TEST(OtherSizes, ConstraintsThatHoldRarelyAreMet) {
  const Problem problem = problem_of_axes(
      R"({"n": 64, "m": 64})",
      R"(, "other_sizes": {"n": [1, 500], "m": [1, 500]}, "constraints": ["n == m", "n % 3 == 1"])");
  const std::vector<Problem> drawn = drawn_instances(problem, 3);
  EXPECT_GE(drawn.size(), 2u);
  for (const Problem& one : drawn) {
    EXPECT_EQ(one.attribute("n"), one.attribute("m"));
    EXPECT_EQ(one.attribute("n") % 3, 1);
  }
}

TEST(OtherSizes, ThoseThatAreTimedAreAsLargeAsTheRulesSay) {
  const Problem problem = problem_of_axes(R"({"n": 4096, "m": 4096})",
                                          R"(, "other_sizes": {"n": [1, 100], "m": [3, 1000]})");
  const std::vector<Sizes> fixed = sizes_in(fixed_instances(problem));
  ASSERT_EQ(fixed.size(), 3u);
  EXPECT_EQ(fixed[0], (Sizes{{"n", 100}, {"m", 1000}}));
  EXPECT_EQ(fixed[1], (Sizes{{"n", 64}, {"m", 512}}));
  EXPECT_EQ(fixed[2], (Sizes{{"n", 73}, {"m", 743}}));
  EXPECT_EQ(sizes_in(fixed_instances(problem)), fixed);
}

TEST(OtherSizes, WhereLargeOnesDoNotExistSmallerOnesAreTimed) {
  // More work than at the problem's own sizes, and a constraint.
  const Problem problem = problem_of_axes(
      R"({"n": 100, "m": 100})",
      R"(, "other_sizes": {"n": [1, 100000], "m": [1, 100000]}, "constraints": ["n % 2 == 0"])");
  const std::vector<Problem> fixed = fixed_instances(problem);
  ASSERT_FALSE(fixed.empty());
  for (const Problem& one : fixed) {
    EXPECT_LE(one.min_bytes, 64 << 20);
    EXPECT_EQ(one.attribute("n") % 2, 0);
  }
}

TEST(OtherSizes, AreFewerWhereThereAreNoMore) {
  EXPECT_TRUE(drawn_instances(problem_of_axes(R"({"n": 4, "m": 4})", ""), 1).empty());
  EXPECT_TRUE(fixed_instances(problem_of_axes(R"({"n": 4, "m": 4})", "")).empty());
  // The problem's own sizes are none of the others.
  const Problem own = problem_of_axes(R"({"n": 4, "m": 4})", R"(, "other_sizes": {"n": [4, 4]})");
  EXPECT_TRUE(drawn_instances(own, 1).empty());
  EXPECT_TRUE(fixed_instances(own).empty());
  const Problem two = problem_of_axes(R"({"n": 4, "m": 4})", R"(, "other_sizes": {"n": [4, 6]})");
  const std::vector<Sizes> drawn = sizes_in(drawn_instances(two, 1));
  EXPECT_EQ(std::set<Sizes>(drawn.begin(), drawn.end()), (std::set<Sizes>{{{"n", 5}}, {{"n", 6}}}));
}

}  // namespace
}  // namespace rekernel

#include "ops/definition/cost.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ops/definition/scope.h"

namespace rekernel::definition {
namespace {

Cost cost(std::vector<TensorInfo> tensors, const std::vector<std::string>& statements) {
  return cost_of(definition_of(std::move(tensors), statements));
}

std::vector<TensorInfo> product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {tensor("a", DType::f32, {m, k}), tensor("b", DType::f32, {k, n})};
}

TEST(Cost, AProductIsTwoOperationsATerm) {
  const Cost small = cost(product(16, 8, 32), {"c[i, j] = sum(l) a[i, l] * b[l, j]"});
  EXPECT_EQ(small.operations, 2.0 * 16 * 8 * 32);
  EXPECT_EQ(small.matrix_operations, 2.0 * 16 * 8 * 32);
  EXPECT_EQ(small.fewest_matrix_operations, 2.0 * 16 * 8 * 32);
  // Three levels of Strassen's method.
  const Cost large = cost(product(4096, 4096, 4096), {"c[i, j] = sum(l) a[i, l] * b[l, j]"});
  EXPECT_EQ(large.fewest_matrix_operations, 2.0 * 4096 * 4096 * 4096 * 343 / 512);
}

TEST(Cost, WhatIsSmallOrNoProductIsNotForMatrixUnits) {
  EXPECT_EQ(cost(product(16, 4, 32), {"c[i, j] = sum(l) a[i, l] * b[l, j]"}).matrix_operations, 0);
  EXPECT_EQ(cost(product(16, 8, 32), {"c[i, j] = max(l) a[i, l] * b[l, j]"}).matrix_operations, 0);
  EXPECT_EQ(cost(product(16, 8, 32), {"c[i] = sum(l) a[i, l]"}).matrix_operations, 0);
  EXPECT_EQ(cost(product(16, 8, 32), {"c[i, j] = sum(l) (a[i, l] + b[l, j])"}).matrix_operations,
            0);
}

TEST(Cost, TermsUnderAConditionOnIndicesAreNotCounted) {
  const Cost causal = cost(product(16, 8, 16), {"c[i, j] = sum(l : l <= i) a[i, l] * b[l, j]"});
  EXPECT_DOUBLE_EQ(causal.matrix_operations, 2.0 * 8 * (16 * 17 / 2));
  const Cost triangular =
      cost(product(16, 16, 16), {"c[i, j] = where(j < i, sum(l) a[i, l] * b[l, j], 0)"});
  EXPECT_DOUBLE_EQ(triangular.matrix_operations, 2.0 * 16 * (16 * 15 / 2));
}

TEST(Cost, AConvolutionKeepsOneTapOfEachStride) {
  const Cost strided =
      cost({tensor("x", DType::f32, {8, 3, 30, 30}), tensor("w", DType::f32, {16, 3, 8, 8})},
           {"y[n, f, p < 10, q < 10] = sum(c, r, s) x[n, c, p * 4 + r - 2, q * 4 + s - 2 else 0] * "
            "w[f, c, r, s]"});
  const double all = 2.0 * 8 * 16 * 10 * 10 * 3 * 8 * 8;
  EXPECT_EQ(strided.matrix_operations, all);
  EXPECT_DOUBLE_EQ(strided.fewest_matrix_operations, all * 16 / 64);
}

TEST(Cost, ScansAndRecurrencesAreLinear) {
  const std::vector<TensorInfo> x = {tensor("x", DType::f32, {1000})};
  EXPECT_EQ(cost(x, {"t[i < 1000] = sum(k : k <= i) x[k]"}).operations, 1000);
  EXPECT_EQ(cost(x, {"t[i] = t[i - 1 else 0] * 0.5 + x[i]"}).operations, 2000);
}

TEST(Cost, TheWorstStatementIsNamed) {
  const Cost two = cost(product(64, 64, 64),
                        {"t[i] = sum(l) a[i, l]", "c[i, j] = t[i] + sum(l) a[i, l] * b[l, j]"});
  EXPECT_EQ(two.worst_statement, 1u);
  EXPECT_EQ(two.worst, 64.0 * 64 * (2 * 64 + 1));
}

bool is_whole(const Definition& definition) { return shares_needed(definition).at("x") == 1; }

bool reads_whole(const std::string& statement) {
  TensorInfo y = output("y", DType::f32, {6});
  TensorInfo label = tensor("label", DType::i64, {6});
  label.interval = {0, 5};
  return is_whole(definition_of({tensor("x", DType::f32, {6}), label, y}, {statement}));
}

// As many ways lead from the first statement to the last as subsets of those between them.
TEST(ReadWhole, ManyWaysToTheOutputAreNotFollowedOneByOne) {
  std::vector<std::string> statements = {"s0[i, j] = x[i, j]"};
  std::string all = "s0[i, j]";
  for (int k = 1; k < 60; ++k) {
    const std::string name = "s" + std::to_string(k) + "[i, j]";
    statements.push_back(name + " = where(i <= j, " + all + ", 0)");
    all += " + " + name;
  }
  statements.push_back("y[i, j] = where(i <= j, " + all + ", 0)");
  const auto shares = shares_needed(definition_of(
      {tensor("x", DType::f32, {4, 4}), output("y", DType::f32, {4, 4})}, statements));
  EXPECT_EQ(shares.at("s59"), 10.0 / 16);
  EXPECT_EQ(shares.at("x"), 10.0 / 16);
}

TEST(ReadWhole, IsWhatEveryMethodReads) {
  EXPECT_TRUE(reads_whole("y[i] = x[i]"));
  EXPECT_TRUE(reads_whole("y[i] = x[5 - i]"));
  EXPECT_TRUE(reads_whole("y[i] = x[i - 1 else 0] + sum(k) x[k]"));
  EXPECT_TRUE(reads_whole("y[i] = sum(k : k <= i) x[k]")) << "a scan";
  EXPECT_FALSE(reads_whole("y[i] = x[i // 2]"));
  EXPECT_FALSE(reads_whole("y[i] = x[i - 1 else 0]"));
  EXPECT_FALSE(reads_whole("y[i] = x[label[i]]"));
  EXPECT_FALSE(reads_whole("y[i] = where(i < 3, x[i], 0)"));
  EXPECT_FALSE(reads_whole("y[i] = sum(k : k < 3) x[k]"));
}

TEST(ReadWhole, WindowsLeaveNoGaps) {
  const auto windows = [](const std::string& place) {
    return is_whole(definition_of({tensor("x", DType::f32, {12}), output("y", DType::f32, {4})},
                                  {"y[i] = sum(r < 3) x[" + place + " else 0]"}));
  };
  EXPECT_TRUE(windows("3 * i + r"));
  EXPECT_TRUE(windows("(3 - i) * 3 + 2 - r"));
  EXPECT_TRUE(windows("4 * r + i"));
  EXPECT_FALSE(windows("2 * i + r")) << "the last ones are not reached";
  EXPECT_FALSE(windows("4 * i + r")) << "one of four is left out";
  EXPECT_FALSE(windows("3 * i + r - 1"));
}

TEST(ReadWhole, GoesThroughStatementsThatAreUsed) {
  const auto through = [](const std::string& last) {
    return is_whole(definition_of({tensor("x", DType::f32, {4, 6}), output("y", DType::f32, {4})},
                                  {"t[i] = sum(j) x[i, j]", last}));
  };
  EXPECT_TRUE(through("y[i] = t[i]"));
  EXPECT_FALSE(through("y[i] = t[i // 2]"));
}

TEST(Cost, TwoConditionsOnOneIndexCountTogether) {
  const double all = 2.0 * 64 * 64 * 64;
  const double triangle = cost(product(64, 64, 64), {"c[i, j] = sum(l : i <= l and l <= j) "
                                                     "a[i, l] * b[l, j]"})
                              .matrix_operations;
  EXPECT_NEAR(triangle / all, 1.0 / 6, 0.01);
}

// What a later mask leaves out is no work that anybody has to do, however the definition puts it.
TEST(Cost, OnlyWhatIsNeededBoundsTheTime) {
  const auto attention = [](const std::string& score, const std::string& seen) {
    const std::vector<std::int64_t> rows = {64, 16};
    return cost({tensor("q", DType::f16, rows), tensor("k", DType::f16, rows),
                 tensor("n", DType::i32, {64}), output("o", DType::f16, rows)},
                {"s[i, j] = " + score, "m[i] = max(j : " + seen + ") s[i, j]",
                 "w[i, j] = exp(s[i, j] - m[i])",
                 "o[i, d] = (sum(j : " + seen + ") w[i, j] * k[j, d]) / (sum(j : " + seen +
                     ") w[i, j]) + n[i]"});
  };
  const std::string plain = "sum(d) q[i, d] * k[j, d]";
  const double product = 2.0 * 64 * 64 * 16;
  EXPECT_EQ(attention(plain, "j >= 0").fewest_matrix_operations, product);
  EXPECT_NEAR(attention(plain, "j <= i").fewest_matrix_operations, product * 65 / 128, 1);
  EXPECT_NEAR(
      attention("where(j <= i, " + plain + ", -infinity)", "j <= i").fewest_matrix_operations,
      product * 65 / 128, 1);
  EXPECT_NEAR(attention(plain, "j <= i and j > i - 8").fewest_matrix_operations / product,
              (8.0 * 64 - 28) / (64 * 64), 0.002);
  EXPECT_EQ(attention(plain, "j < n[i]").fewest_matrix_operations, 0) << "values decide";
}

}  // namespace
}  // namespace rekernel::definition

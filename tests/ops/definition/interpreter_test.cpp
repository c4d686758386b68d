#include "ops/definition/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/ops/definition/scope.h"

namespace rekernel::definition {
namespace {

using Numbers = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// What a statement makes of x, which has six elements, and of a, which has 2 by 3.
Numbers made_of(const std::string& statement, const Numbers& elements = {3, 1, 4, 1, 5, 9}) {
  Definition definition =
      definition_of({tensor("x", DType::f32, {6}), tensor("a", DType::f32, {2, 3})}, {statement});
  const Values values = interpret(definition, {{"x", elements}, {"a", elements}});
  return values.at(definition.statements().back().statement.name);
}

TEST(Interpreter, ReducesUnderConditions) {
  EXPECT_EQ(made_of("t = sum(k) x[k]"), Numbers{23});
  EXPECT_EQ(made_of("t = sum(k : k % 2 == 1) x[k]"), Numbers{11});
  EXPECT_EQ(made_of("t = product(k : k < 3) x[k]"), Numbers{12});
  EXPECT_EQ(made_of("t[i] = max(j) a[i, j]"), (Numbers{4, 9}));
  EXPECT_EQ(made_of("t = min(i, j) a[i, j]"), Numbers{1});
  EXPECT_EQ(made_of("t = max(k : x[k] > 100) x[k]"), Numbers{-infinity});
  EXPECT_EQ(made_of("t = min(k : x[k] > 100) x[k]"), Numbers{infinity});
  EXPECT_EQ(made_of("t = sum(k) x[k] * 2 + 1"), Numbers{47}) << "what is reduced is the term";
  EXPECT_EQ(made_of("t = sum(k) (x[k] + 1)"), Numbers{29});
}

TEST(Interpreter, SumsLoseNothingToTheirOrder) {
  EXPECT_EQ(made_of("t = sum(k) x[k]", {1e16, 1, -1e16, 1, 1e16, -1e16}), Numbers{2});
}

TEST(Interpreter, TheFirstOfEqualExtremesIsTheirIndex) {
  EXPECT_EQ(made_of("t = argmin(k) x[k]"), Numbers{1});
  EXPECT_EQ(made_of("t = argmax(k) x[k]", {7, 9, 9, 1, 9, 0}), Numbers{1});
  EXPECT_EQ(made_of("t = argmax(k : k > 1) x[k]", {7, 9, 9, 1, 9, 0}), Numbers{2});
  EXPECT_EQ(made_of("t[i] = argmax(j) a[i, j]"), (Numbers{2, 2}));
}

TEST(Interpreter, ScansRunBothWays) {
  EXPECT_EQ(made_of("t[i < 6] = sum(k : k <= i) x[k]"), (Numbers{3, 4, 8, 9, 14, 23}));
  EXPECT_EQ(made_of("t[i < 6] = sum(k : k < i) x[k]"), (Numbers{0, 3, 4, 8, 9, 14}));
  EXPECT_EQ(made_of("t[i < 6] = sum(k : k >= i) x[k]"), (Numbers{23, 20, 19, 15, 14, 9}));
  EXPECT_EQ(made_of("t[i < 6] = product(k : k <= i) x[k]"), (Numbers{3, 3, 12, 12, 60, 540}));
  EXPECT_EQ(made_of("t[i < 6] = max(k : k <= i) x[k]"), (Numbers{3, 3, 4, 4, 5, 9}));
}

TEST(Interpreter, RecurrencesReadWhatIsThere) {
  EXPECT_EQ(made_of("t[i] = 2 * t[i - 1 else 1] + x[i]"), (Numbers{5, 11, 26, 53, 111, 231}));
  EXPECT_EQ(made_of("t[i < 6] = t[i - 1 else 1] + t[i - 2 else 0] + 0 * x[i]"),
            (Numbers{1, 1, 2, 3, 5, 8}));
  // Along the outer axis, too.
  EXPECT_EQ(made_of("t[i, j] = t[i - 1, j else 0] + a[i, j]"), (Numbers{3, 1, 4, 4, 6, 13}));
}

TEST(Interpreter, ReadsOutsideHaveAValue) {
  EXPECT_EQ(made_of("t[i < 6] = x[i - 1 else -1] + x[i + 1 else 0.5]"),
            (Numbers{0, 7, 2, 9, 10, 5.5}));
  EXPECT_EQ(made_of("t[i < 6] = x[5 - i]"), (Numbers{9, 5, 1, 4, 1, 3}));
}

TEST(Interpreter, OnlyWhatIsChosenIsRead) {
  EXPECT_EQ(made_of("t[i < 6] = where(i > 0, x[i - 1], 7)"), (Numbers{7, 3, 1, 4, 1, 5}));
  EXPECT_EQ(made_of("t[i] = where(i < 2 or i == 5, x[i], infinity)"),
            (Numbers{3, 1, infinity, infinity, infinity, 9}));
  EXPECT_EQ(made_of("t = sum(k : k > 0) x[k] * x[k - 1]"), Numbers{3 + 4 + 4 + 5 + 45});
}

TEST(Interpreter, IntegersRoundDownAndDivisionsAreReal) {
  EXPECT_EQ(made_of("t[i] = (i - 3) // 2 + 0 * x[i]"), (Numbers{-2, -1, -1, 0, 0, 1}));
  EXPECT_EQ(made_of("t[i] = (i - 3) % 4 + 0 * x[i]"), (Numbers{1, 2, 3, 0, 1, 2}));
  EXPECT_EQ(made_of("t[i] = i / 4 + 0 * x[i]"), (Numbers{0, 0.25, 0.5, 0.75, 1, 1.25}));
  EXPECT_EQ(made_of("t[i] = 2 ^ (i - 1) + 0 * x[i]"), (Numbers{0.5, 1, 2, 4, 8, 16}));
  EXPECT_EQ(made_of("t[i] = -x[i]^2"), (Numbers{-9, -1, -16, -1, -25, -81}));
}

TEST(Interpreter, ConditionsCountAsZeroAndOne) {
  EXPECT_EQ(made_of("t = sum(k) (x[k] > 2)"), Numbers{4});
  EXPECT_EQ(made_of("t[i] = (x[i] == 1) * 10 + (not x[i] >= 4 and i != 0)"),
            (Numbers{0, 11, 0, 11, 0, 0}));
}

TEST(Interpreter, FunctionsAreTheUsualOnes) {
  EXPECT_EQ(made_of("t[i] = minimum(maximum(x[i], 2), 4)"), (Numbers{3, 2, 4, 2, 4, 4}));
  EXPECT_EQ(made_of("t[i] = abs(floor(-x[i] / 2))"), (Numbers{2, 1, 2, 1, 3, 5}));
  const Numbers exponentials = made_of("t[i] = log(exp(x[i])) + tanh(0) + erf(0) + expm1(0)");
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(exponentials[i], made_of("t[i] = 1.0 * x[i]")[i], 1e-14);
}

TEST(Interpreter, NarrowTypesRoundToEven) {
  const Numbers values = {1 + 0x1p-11, 1 + 0x1p-8, 1.0625, 449, 70000, -1e-9};
  EXPECT_EQ(made_of("t[i] = f16(x[i])", values),
            (Numbers{1, 1 + 0x1p-8, 1.0625, 449, infinity, 0}));
  EXPECT_EQ(made_of("t[i] = bf16(x[i])", values)[1], 1.0);
  EXPECT_EQ(made_of("t[i] = f8e4m3(x[i])", values)[2], 1.0);
  EXPECT_EQ(made_of("t[i] = f8e4m3(x[i])", values)[3], 448.0);
  EXPECT_TRUE(std::isnan(made_of("t[i] = f8e4m3(x[i])", values)[4]));
  EXPECT_EQ(made_of("t[i] = f8e5m2(x[i])", values)[4], infinity);
}

TEST(Interpreter, AnIndexThatWasReadMustLieInside) {
  const Definition definition = definition_of({tensor("x", DType::f32, {3}),
                                               [] {
                                                 TensorInfo label =
                                                     tensor("label", DType::i64, {2});
                                                 label.interval = {0, 2};
                                                 return label;
                                               }()},
                                              {"t[i] = x[label[i]]"});
  EXPECT_EQ(interpret(definition, {{"x", {5, 6, 7}}, {"label", {2, 0}}}).at("t"), (Numbers{7, 5}));
  EXPECT_THROW(interpret(definition, {{"x", {5, 6, 7}}, {"label", {3, 0}}}), std::out_of_range);
}

}  // namespace
}  // namespace rekernel::definition

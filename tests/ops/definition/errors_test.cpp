// What the reader of statements says of bad ones.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/definition/parser.h"
#include "tests/ops/definition/scope.h"

namespace rekernel::definition {
namespace {

/// n = 4, m = 6, zero_to_two by an integer tensor, a scalar, and outputs of four kinds.
Definition scope() {
  Definition scope;
  expect_ok(scope.add_axis("n", 4));
  expect_ok(scope.add_axis("m", 6));
  expect_ok(scope.add_axis("huge", std::int64_t{1} << 40));
  expect_ok(scope.add_constant("eps", 1e-5));
  TensorInfo label = tensor("label", DType::i64, {4});
  label.interval = {0, 5};
  for (TensorInfo one : {tensor("x", DType::f32, {4, 6}), tensor("v", DType::f32, {6}), label,
                         tensor("mask", DType::boolean, {4}), tensor("s", DType::f32, {}),
                         output("y", DType::f32, {4, 6}), output("z", DType::f32, {4}),
                         output("index", DType::i8, {4}), output("total", DType::f32, {})}) {
    expect_ok(scope.add_tensor(one));
  }
  return scope;
}

struct Bad {
  std::string statement;
  std::string message;
};

void expect_messages(const std::vector<Bad>& table) {
  for (const Bad& bad : table) {
    const Result<Ok> added = scope().add_statement(std::string_view(bad.statement));
    if (added) {
      ADD_FAILURE() << bad.statement << ": taken";
    } else {
      EXPECT_EQ(added.error().message, bad.message) << bad.statement;
    }
  }
}

TEST(BadStatements, WhatIsNoStatement) {
  expect_messages({
      {"", "column 1: expected the name of what is defined, got the end"},
      {"y", "column 2: expected '=', got the end"},
      {"y[i, j]", "column 8: expected '=', got the end"},
      {"y[i, j] = ", "column 11: expected a number, a name or '(', got the end"},
      {"y[i j] = 1", "column 5: expected ',' or ']', got 'j'"},
      {"y[i, j] = x[i, j", "column 17: expected ']', got the end"},
      {"y[i, j] = (x[i, j]", "column 19: expected ')', got the end"},
      {"y[i, j] = x[i, j] x[i, j]", "column 19: expected an operator or the end, got 'x'"},
      {"y[i, j] = x[i, j] + ", "column 21: expected a number, a name or '(', got the end"},
      {"y[i, j] = 1 $ 2",
       "column 13: expected a name, a number or an operator, got a character of none"},
      {"y[i, j] = x[i, j] else 0", "column 19: expected an operator or the end, got 'else'"},
      {"3 = 4", "column 1: expected the name of what is defined, got '3'"},
      {"y[i, j] = sum(k) ", "column 18: expected a number, a name or '(', got the end"},
      {"y[i, j] = 99999999999999999999",
       "column 11: expected an integer of at most 9e15, got '99999999999999999999'"},
      {"y[i, j] == x[i, j]", "column 9: expected '=', got '=='"},
      {"else = 1", "column 1: expected the name of what is defined, got 'else'"},
      {"y[i, j] = x[i, j]; z[i] = 1",
       "column 18: expected a name, a number or an operator, got a character of none"},
  });
}

TEST(BadStatements, NamesThatMeanNothing) {
  expect_messages({
      {"y[i, j] = w[i, j]",
       "column 11: no tensor is called 'w': expected one that is defined before"},
      {"y[i, j] = x[i, j] * w",
       "column 21: nothing is called 'w': expected an index, an axis, a constant or a tensor that "
       "is defined before"},
      {"y[i, j] = cosine(x[i, j])",
       "column 11: no function is called 'cosine': expected one of abs, bf16, cos, erf, exp, "
       "expm1, f16, f8e4m3, f8e5m2, floor, log, log1p, maximum, minimum, sin, sqrt, tanh, where"},
      {"y[i, j] = x[i, k]",
       "column 16: nothing is called 'k': expected an index, an axis, a constant or a tensor that "
       "is defined before"},
      {"z[i] = z2[i]", "column 8: no tensor is called 'z2': expected one that is defined before"},
      {"y[i, j] = x", "column 11: 'x' has 2 dimensions: expected '[' and as many indices"},
      {"y[i, j] = v[j, 0]", "column 11: 'v' has 1 dimension, got 2 indices"},
      {"y[i, j] = exp(x[i, j], 1)", "column 11: 'exp' takes 1 operand, got 2"},
      {"y[i, j] = where(i < j, 1)", "column 11: 'where' takes 3 operands, got 2"},
  });
}

TEST(BadStatements, NamesThatMeanSomethingElse) {
  expect_messages({
      {"x[i, j] = 1.0", "column 1: 'x' has a meaning already: expected a new name"},
      {"n[i] = x[i, 0]", "column 1: 'n' has a meaning already: expected another name"},
      {"y[i, i] = x[i, i]", "column 3: index 'i' stands twice: expected another name"},
      {"y[n, j] = x[n, j]", "column 3: 'n' has a meaning already: expected another name"},
      {"y[y, j] = x[y, j]", "column 3: 'y' has a meaning already: expected another name"},
      {"z[i] = sum(i) v[i]", "column 12: index 'i' stands twice: expected another name"},
      {"z[i] = sum(k, k) x[i, k]", "column 15: index 'k' stands twice: expected another name"},
      {"sum[i] = label[i]",
       "column 1: 'sum' is a word of the language, of C++ or of Python: expected another name"},
      {"t[for] = v[for]",
       "column 3: 'for' is a word of the language, of C++ or of Python: expected another name"},
      {"t_[i] = v[i]",
       "column 1: 't_' can be no name: expected letters, digits and '_', at most 64, with neither "
       "'_' at the end nor two at the start"},
      {"z[i, j] = x[i, j]", "column 1: output 'z' has 1 dimension, got 2 indices"},
      {"y[i] = z[i]", "column 1: output 'y' has 2 dimensions, got 1 index"},
  });
}

TEST(BadStatements, IndicesWithoutRange) {
  expect_messages({
      {"z[i] = sum(k) x[i, 0]",
       "column 12: index 'k' stands alone in no read: expected an end ('k < …')"},
      {"t[i] = 1.0", "column 3: index 'i' stands alone in no read: expected an end ('i < …')"},
      {"total = sum(k) v[k + 1 else 0]",
       "column 13: index 'k' stands alone in no read: expected an end ('k < …')"},
      {"t[i] = x[i, i]",
       "column 13: index 'i' runs over axes of 4 and 6 elements: expected one size, or an end ('i "
       "< …')"},
      {"z[i] = sum(k < 0) x[i, k]",
       "column 12: index 'k' runs over nothing: expected an end of at least 1"},
      {"z[i] = sum(k < n - m) 1.0",
       "column 12: index 'k' runs over nothing: expected an end of at least 1"},
      {"z[i] = sum(k < eps) 1.0", "column 16: expected an integer, got a real"},
      {"y[i, j < n] = x[i, j]", "column 6: index 'j' ends at 4, the output's axis at 6"},
      {"t[i < label] = 1.0", "column 7: 'label' has 1 dimension: expected '[' and as many indices"},
  });
}

TEST(BadStatements, ReadsOutside) {
  expect_messages({
      {"z[i] = x[i, i + 3]",
       "column 13: 'x' is read from 3 to 6 of dimension 2: expected 0 to 5, or 'else' and what is "
       "read outside"},
      {"z[i] = x[i - 1, 0]",
       "column 10: 'x' is read from -1 to 2 of dimension 1: expected 0 to 3, or 'else' and what is "
       "read outside"},
      {"z[i] = v[label[i] + 1]",
       "column 10: 'v' is read from 1 to 6 of dimension 1: expected 0 to 5, or 'else' and what is "
       "read outside"},
      {"z[i] = sum(k : k < 6) v[k + 1]",
       "column 12: index 'k' stands alone in no read: expected an end ('k < …')"},
      {"z[i] = v[s]", "column 10: expected an integer as index, got a real"},
      {"z[i] = v[i / 2]", "column 10: expected an integer as index, got a real"},
      {"z[i] = v[mask[i]]", "column 10: expected an integer as index, got a condition"},
      {"y[i, j] = y[i, j - 1]",
       "column 11: a read of 'y' itself has the indices of the left side, one of them smaller ('j "
       "- 1'), and 'else'"},
      {"y[i, j] = y[i, j + 1 else 0]",
       "column 16: a read of 'y' itself has the indices of the left side, one of them smaller ('j "
       "- 1'), and 'else'"},
      {"y[i, j] = y[i - 1, j - 1 else 0]",
       "column 20: a read of 'y' itself has the indices of the left side, one of them smaller ('j "
       "- 1'), and 'else'"},
      {"y[i, j] = y[i, j else 0]",
       "column 11: a read of 'y' itself has the indices of the left side, one of them smaller ('j "
       "- 1'), and 'else'"},
      {"total = total + 1",
       "column 9: nothing is called 'total': expected an index, an axis, a constant or a tensor "
       "that is defined before"},
  });
}

TEST(BadStatements, Cycles) {
  expect_messages({
      {"z[i] = t[i]", "column 8: no tensor is called 't': expected one that is defined before"},
      {"z[i] = y[i, 0]", "column 8: no tensor is called 'y': expected one that is defined before"},
  });
}

TEST(BadStatements, NumbersThatDoNotFit) {
  expect_messages({
      {"index[i] = x[i, 0]",
       "column 1: 'index' has type i8: expected integers on the right, got reals"},
      {"index[i] = 100 * i",
       "column 1: 'index' has type i8, whose values run from -128 to 127: the right side runs from "
       "0 to 300"},
      {"z[i] = 1 / i", "column 12: a division by an integer from 0 to 3, which may be 0"},
      {"z[i] = i // i", "column 13: expected a divisor of at least 1, got one from 0"},
      {"z[i] = i % (i - 1)", "column 13: expected a divisor of at least 1, got one from -1"},
      {"z[i] = x[i, 0] // 2", "column 8: expected an integer beside '//', got a real"},
      {"z[i] = x[i, 0] % 2", "column 8: expected an integer beside '%', got a real"},
      {"z[i] = huge * huge", "column 8: an integer may pass 2^53: expected smaller ones"},
      {"z[i] = sum(k < huge) (k + 0)",
       "column 8: a sum of integers may pass 2^53: expected a real body ('1.0 * …')"},
      {"z[i] = where(i, 1, 2)",
       "column 14: expected a condition as the first operand of 'where', got an integer"},
      {"z[i] = sum(k : k) v[k]", "column 16: expected a condition after ':', got an integer"},
      {"z[i] = not i", "column 12: expected a condition, got an integer"},
      {"z[i] = i and 1", "column 8: expected a condition, got an integer"},
      {"z[i] = argmax(k, l) x[k, l]", "column 18: 'argmax' runs over one index"},
  });
}

TEST(BadStatements, HostileTextsHaveLimits) {
  const auto message = [](const std::string& statement) {
    const Result<Ok> added = scope().add_statement(std::string_view(statement));
    return added ? std::string("taken") : added.error().message;
  };
  const std::string deep = "z[i] = " + std::string(100, '(') + "1" + std::string(100, ')');
  EXPECT_EQ(message(deep), "column 68: expected a shallower expression, got '('");
  EXPECT_EQ(message("z[i] = " + std::string(100, '-') + "1"),
            "column 69: expected a shallower expression, got '-'");
  std::string negations = "z[i] = ";
  for (int i = 0; i < 100; ++i) negations += "not ";
  EXPECT_NE(message(negations + "1").find("expected a shallower expression"), std::string::npos);
  std::string powers = "z[i] = 1";
  for (int i = 0; i < 100; ++i) powers += "^1";
  EXPECT_NE(message(powers).find("expected a shallower expression"), std::string::npos);
  EXPECT_EQ(message("z[i] = " + std::string(5000, '1')),
            "column 1: expected at most 4000 characters, got 5007");
  EXPECT_EQ(
      message(std::string(100, 'z') + " = 1"),
      "column 1: expected a name of at most 64 characters, got '" + std::string(100, 'z') + "'");
  EXPECT_EQ(message("z[i] = 1e999"), "column 8: expected a number, got '1e999'");
  // As long as a statement can be: each operator one level deeper.
  std::string chain = "z[i] = 1.0";
  while (chain.size() < max_statement_length - 2) chain += "+1";
  EXPECT_EQ(message(chain), "taken");
}

TEST(BadStatements, WhatIsDefinedHasALimit) {
  const std::string expected = "column 1: 't' has more than 68719476736 elements: expected fewer";
  EXPECT_EQ(scope().add_statement(std::string_view("t[i < huge] = 1.0")).error().message, expected);
  EXPECT_EQ(scope()
                .add_statement(std::string_view("t[i < huge, j < huge, k < huge] = 1.0"))
                .error()
                .message,
            expected);
}

TEST(BadStatements, OutputsAndNamesMustBeUsed) {
  Definition definition;
  expect_ok(definition.add_tensor(tensor("x", DType::f32, {4})));
  expect_ok(definition.add_tensor(output("y", DType::f32, {4})));
  EXPECT_EQ(definition.finish().error().message,
            "'x' is used by no statement: expected a use, or no 'x'");
  expect_ok(definition.add_statement(std::string_view("t[i] = x[i]")));
  EXPECT_EQ(definition.finish().error().message, "output 'y' has no statement: expected one");
  expect_ok(definition.add_statement(std::string_view("y[i] = x[i] + 1")));
  EXPECT_EQ(definition.finish().error().message,
            "'t' is used by no statement: expected a use, or no 't'");
}

TEST(BadConstants, HaveAxesAndNumbersAlone) {
  const Definition definition = scope();
  EXPECT_EQ(*definition.integer("n * m - 1"), 23);
  EXPECT_EQ(*definition.integer("-7 // 2"), -4);
  EXPECT_EQ(*definition.integer("-7 % 4"), 1);
  EXPECT_TRUE(*definition.condition("m % n == 2 and n < m"));
  EXPECT_DOUBLE_EQ(*definition.real("1 / sqrt(n)"), 0.5);
  EXPECT_EQ(definition.integer("n / 2").error().message,
            "column 1: expected an integer, got a real");
  EXPECT_EQ(definition.integer("v[0]").error().message,
            "column 1: expected axes, constants and numbers alone");
  EXPECT_EQ(definition.condition("n").error().message,
            "column 1: expected a condition, got an integer");
  EXPECT_EQ(definition.real("1 / (n - 4)").error().message,
            "column 6: a division by an integer from 0 to 0, which may be 0");
  EXPECT_EQ(definition.real("exp(1e6)").error().message, "column 1: expected a finite number");
}

}  // namespace
}  // namespace rekernel::definition

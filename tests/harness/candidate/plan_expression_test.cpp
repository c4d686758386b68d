#include "harness/candidate/plan_expression.h"

#include <gtest/gtest.h>

#include <string>

namespace rekernel {
namespace {

const PlanNames names = {{"rows", 7}, {"columns", 300}, {"zero", 0}, {"large", INT64_MAX}};

std::int64_t value(const std::string& text) {
  const Result<std::int64_t> found = integer_of(text, names);
  EXPECT_TRUE(found) << text << ": " << (found ? "" : found.error().message);
  return found ? *found : -12345;
}

bool holds(const std::string& text) {
  const Result<bool> found = condition_of(text, names);
  EXPECT_TRUE(found) << text << ": " << (found ? "" : found.error().message);
  return found && *found;
}

std::string error(const std::string& text) {
  const Result<std::int64_t> found = integer_of(text, names);
  return found ? "" : found.error().message;
}

std::string condition_error(const std::string& text) {
  const Result<bool> found = condition_of(text, names);
  return found ? "" : found.error().message;
}

TEST(PlanExpression, ComputesIntegers) {
  EXPECT_EQ(value("42"), 42);
  EXPECT_EQ(value("  rows*columns "), 2100);
  EXPECT_EQ(value("2 + 3 * 4 - 5"), 9);
  EXPECT_EQ(value("(2 + 3) * 4"), 20);
  EXPECT_EQ(value("10 - 3 - 2"), 5);
  EXPECT_EQ(value("100 / 7 / 2"), 7);
  EXPECT_EQ(value("ceil_div(columns, 128)"), 3);
  EXPECT_EQ(value("ceil_div(256, 128)"), 2);
  EXPECT_EQ(value("min(rows, columns) + max(rows, 10)"), 17);
  EXPECT_EQ(value("min(max(rows, 1), ceil_div(columns, 7))"), 7);
  EXPECT_EQ(value("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(value("-9223372036854775807 - 1"), INT64_MIN);
}

TEST(PlanExpression, DivisionRoundsDown) {
  EXPECT_EQ(value("7 / 2"), 3);
  EXPECT_EQ(value("-7 / 2"), -4);
  EXPECT_EQ(value("7 / -2"), -4);
  EXPECT_EQ(value("-7 / -2"), 3);
  EXPECT_EQ(value("-7 // 2"), -4);
  EXPECT_EQ(value("-8 / 2"), -4);
  EXPECT_EQ(value("7 % 4"), 3);
  EXPECT_EQ(value("-1 % 4"), 3);
  EXPECT_EQ(value("1 % -4"), -3);
  EXPECT_EQ(value("ceil_div(-7, 2)"), -3);
  EXPECT_EQ(value("(-9223372036854775807 - 1) % -1"), 0);
}

TEST(PlanExpression, DecidesConditions) {
  EXPECT_TRUE(holds("rows == 7"));
  EXPECT_TRUE(holds("rows != 8 and columns % 4 == 0"));
  EXPECT_FALSE(holds("rows > 7 or columns < 300"));
  EXPECT_TRUE(holds("not rows > 7"));
  EXPECT_TRUE(holds("not (rows == 7 and columns == 7)"));
  EXPECT_TRUE(holds("(rows <= 7) and (columns >= 300 or rows == 1)"));
  // `and` binds tighter than `or`, `not` tighter than both.
  EXPECT_TRUE(holds("rows == 7 or rows == 7 and rows == 8"));
  EXPECT_FALSE(holds("not rows == 7 and rows == 7"));
}

TEST(PlanExpression, WhatIsDecidedAlreadyIsNotComputed) {
  EXPECT_FALSE(holds("zero > 0 and columns / zero > 1"));
  EXPECT_TRUE(holds("zero == 0 or columns % zero == 0"));
  EXPECT_FALSE(holds("zero > 0 and (rows == 1 or columns / zero > 1)"));
  EXPECT_EQ(condition_error("zero == 0 and columns / zero > 1"), "column 23: a division by 0");
  // And is read all the same.
  EXPECT_NE(condition_error("zero > 0 and colums > 1").find("unknown name 'colums'"),
            std::string::npos);
}

TEST(PlanExpression, ValuesThatAreNoneAreErrors) {
  EXPECT_EQ(error("rows / zero"), "column 6: a division by 0");
  EXPECT_EQ(error("rows % (rows - 7)"), "column 6: a division by 0");
  EXPECT_EQ(error("ceil_div(rows, zero)"), "column 1: a division by 0");
  EXPECT_EQ(error("large + 1"), "column 7: its value does not fit in 64 bits");
  EXPECT_EQ(error("large * 2"), "column 7: its value does not fit in 64 bits");
  EXPECT_EQ(error("-large - 2"), "column 8: its value does not fit in 64 bits");
  EXPECT_EQ(error("(-large - 1) / -1"), "column 14: its value does not fit in 64 bits");
  EXPECT_EQ(error("-(-large - 1)"), "column 1: its value does not fit in 64 bits");
  EXPECT_EQ(error("9223372036854775808"),
            "column 1: expected an integer below 2^63, got '9223372036854775808'");
}

TEST(PlanExpression, SaysWhereTheTextIsWrong) {
  EXPECT_EQ(error(""), "column 1: expected an integer, a name or '(', got the end");
  EXPECT_EQ(error("rows +"), "column 7: expected an integer, a name or '(', got the end");
  EXPECT_EQ(error("rows columns"), "column 6: expected an operator or the end, got 'columns'");
  EXPECT_EQ(error("(rows"), "column 6: expected ')', got the end");
  EXPECT_EQ(error("rows & 1"), "column 6: expected an operator or the end, got '&'");
  EXPECT_EQ(error("1.5"), "column 1: expected an integer below 2^63, got '1.5'");
  EXPECT_EQ(error("0x10"), "column 1: expected an integer below 2^63, got '0x10'");
  EXPECT_EQ(error("heads * 2"),
            "column 1: unknown name 'heads': expected one of columns, large, rows, zero");
  EXPECT_EQ(error("sqrt(rows, 2)"),
            "column 1: unknown function 'sqrt': expected min, max or ceil_div");
  EXPECT_EQ(error("min(rows)"), "column 9: expected ',', got ')'");
  EXPECT_EQ(error("min(rows, 1, 2)"), "column 12: expected ')', got ','");
  EXPECT_EQ(error("rows == 7"), "column 1: expected an integer, got a condition");
  EXPECT_EQ(error("1 + (rows == 7)"), "column 5: expected an integer, got a condition");
  EXPECT_EQ(error("and"), "column 1: expected an integer, a name or '(', got 'and'");
  EXPECT_EQ(condition_error("rows"),
            "column 1: expected a condition such as 'rows % 4 == 0', got an integer");
  EXPECT_EQ(condition_error("rows and columns == 1"),
            "column 1: expected a condition, got an integer");
  EXPECT_EQ(condition_error("rows == 1 and not columns"),
            "column 19: expected a condition, got an integer");
  EXPECT_EQ(condition_error("1 < rows < 9"), "column 10: expected an operator or the end, got '<'");
}

TEST(PlanExpression, HostileTextsAreErrors) {
  EXPECT_EQ(error(std::string(1001, '1')), "column 1: expected at most 1000 characters, got 1001");
  EXPECT_NE(error(std::string(400, '(') + "1" + std::string(400, ')')).find("no deeper nesting"),
            std::string::npos);
  EXPECT_NE(error(std::string(900, '-') + "1").find("no deeper nesting"), std::string::npos);
  std::string nots;
  for (int i = 0; i < 200; ++i) nots += "not ";
  EXPECT_NE(condition_error(nots + "rows == 1").find("no deeper nesting"), std::string::npos);
  EXPECT_NE(error(std::string("rows\0+1", 7)), "");
  EXPECT_NE(error("rows \xff"), "");
}

TEST(PlanExpression, CanBeCheckedWithoutItsValue) {
  EXPECT_TRUE(check_integer("rows / zero + large * large", names));
  EXPECT_TRUE(check_condition("rows / zero == 1", names));
  EXPECT_FALSE(check_integer("rows / nothing", names));
  EXPECT_FALSE(check_integer("rows == 1", names));
  EXPECT_FALSE(check_condition("rows +", names));
}

}  // namespace
}  // namespace rekernel

#include "ops/problem.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

TEST(DTypes, SizesAndNames) {
  EXPECT_EQ(size_in_bytes(DType::u8), 1);
  EXPECT_EQ(size_in_bytes(DType::f16), 2);
  EXPECT_EQ(size_in_bytes(DType::bf16), 2);
  EXPECT_EQ(size_in_bytes(DType::f32), 4);
  EXPECT_EQ(size_in_bytes(DType::i32), 4);
  EXPECT_EQ(size_in_bytes(DType::f64), 8);
  EXPECT_STREQ(to_string(DType::f16), "f16");
  EXPECT_STREQ(to_string(DType::bf16), "bf16");
  EXPECT_STREQ(to_string(DType::f32), "f32");
  EXPECT_STREQ(to_string(DType::f64), "f64");
  EXPECT_STREQ(to_string(DType::u8), "u8");
  EXPECT_STREQ(to_string(DType::i32), "i32");
}

TEST(Tensors, ElementsAreCheckedProducts) {
  EXPECT_EQ((Tensor{"t", DType::f16, {3, 4, 5}}.elements()), 60);
  EXPECT_EQ((Tensor{"t", DType::f16, {3, 4, 5}}.bytes()), 120);
  EXPECT_EQ((Tensor{"scalar", DType::f32, {}}.elements()), 1);
  EXPECT_EQ((Tensor{"empty", DType::f32, {7, 0}}.elements()), 0);
  const std::int64_t large = std::int64_t{1} << 32;
  EXPECT_THROW((Tensor{"t", DType::f32, {large, large}}.elements()), std::overflow_error);
  EXPECT_THROW((Tensor{"t", DType::f32, {-1}}.elements()), std::overflow_error);
}

Problem small_problem() {
  Problem problem;
  problem.id = "small";
  problem.tensors = {{"x", DType::f32, {2, 3}, Role::input},
                     {"y", DType::f32, {65536, 65536}, Role::output}};
  problem.attributes = {{"rows", std::int64_t{2}},
                        {"large", std::int64_t{5'000'000'000}},
                        {"eps", 1e-5},
                        {"one", 1.0}};
  return problem;
}

TEST(Problems, AreSearchedByName) {
  const Problem problem = small_problem();
  ASSERT_EQ(problem.outputs().size(), 1u);
  EXPECT_EQ(problem.outputs().front()->name, "y");
  ASSERT_EQ(problem.inputs().size(), 1u);
  EXPECT_EQ(problem.inputs().front()->name, "x");
  ASSERT_NE(problem.find_tensor("x"), nullptr);
  EXPECT_EQ(problem.find_tensor("x")->elements(), 6);
  EXPECT_EQ(problem.find_tensor("z"), nullptr);
  EXPECT_EQ(problem.attribute("rows"), 2);
  EXPECT_EQ(problem.real_attribute("eps"), 1e-5);
  EXPECT_THROW(problem.attribute("columns"), std::out_of_range);
  EXPECT_THROW(problem.attribute("eps"), std::bad_variant_access);
  EXPECT_TRUE(Problem{}.outputs().empty());
  EXPECT_EQ(truth_buffer("y"), "truth_y");
}

TEST(Problems, HeaderHasAttributesAndElementCounts) {
  EXPECT_EQ(problem_header(small_problem()),
            "#pragma once\n"
            "\n"
            "namespace problem {\n"
            "inline constexpr int rows = 2;\n"
            "inline constexpr long long large = 5000000000;\n"
            "inline constexpr double eps = 1e-05;\n"
            "inline constexpr double one = 1.0;\n"
            "inline constexpr int x_elements = 6;\n"
            "inline constexpr long long y_elements = 4294967296;\n"
            "}  // namespace problem\n");
}

}  // namespace
}  // namespace rekernel

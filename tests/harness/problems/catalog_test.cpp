#include "harness/problems/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/problems/small_instance.h"
#include "ops/inputs.h"
#include "tests/problems.h"

namespace rekernel {
namespace {

std::vector<const Problem*> published() {
  std::vector<const Problem*> problems;
  for (const Problem& problem : catalog()) {
    if (problem.group == "published") problems.push_back(&problem);
  }
  return problems;
}

TEST(Catalog, EveryFileCanBeRead) {
  for (const Error& error : catalog_errors()) ADD_FAILURE() << error.message;
  EXPECT_GE(catalog().size(), 122u);
}

TEST(Catalog, PublishedProblemsComeFirst) {
  std::set<std::string> ids;
  for (const Problem* problem : published()) ids.insert(problem->id);
  EXPECT_EQ(ids, (std::set<std::string>{"matmul_fp32", "conv2d", "softmax", "layernorm",
                                        "conv2d_relu_maxpool", "matmul_fp16", "attention_fp16",
                                        "attention_fp16_causal"}));
  EXPECT_EQ(problem_groups().front(), "published");
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(catalog()[i].group, "published");
}

TEST(Catalog, IsSearchedById) {
  std::set<std::string> ids;
  for (const Problem& problem : catalog()) {
    EXPECT_TRUE(ids.insert(problem.id).second) << problem.id << " stands in two groups";
    ASSERT_NE(find_problem(problem.id), nullptr) << problem.id;
    EXPECT_EQ(find_problem(problem.id)->text, problem.text);
  }
  EXPECT_EQ(find_problem("no_such_problem"), nullptr);
  EXPECT_EQ(find_problem(""), nullptr);
}

TEST(Catalog, OutputShapes) {
  const auto shape = [](const char* id) { return find_problem(id)->outputs().front()->shape; };
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(shape("matmul_fp32"), (Shape{4096, 4096}));
  EXPECT_EQ(shape("conv2d"), (Shape{100, 96, 55, 55}));
  EXPECT_EQ(shape("softmax"), (Shape{4096, 65536}));
  EXPECT_EQ(shape("layernorm"), (Shape{16, 64, 256, 256}));
  EXPECT_EQ(shape("conv2d_relu_maxpool"), (Shape{100, 96, 27, 27}));
  EXPECT_EQ(shape("attention_fp16"), (Shape{4, 16, 4096, 128}));
}

// The ceilings at the rates that were measured on an H200: a copy at 4.28 TB/s and FP16 matrix
// products at 790 TFLOP/s.
TEST(Catalog, CeilingsOnAnH200) {
  const std::map<std::string, double> ceiling_ms = {{"matmul_fp32", 0.348},
                                                    {"conv2d", 0.041},
                                                    {"softmax", 0.502},
                                                    {"layernorm", 0.133},
                                                    {"matmul_fp16", 0.174},
                                                    {"conv2d_relu_maxpool", 0.027},
                                                    {"attention_fp16_causal", 0.348},
                                                    {"attention_fp16", 0.696}};
  for (const Problem* problem : published()) {
    const double copy_ms = static_cast<double>(problem->min_bytes) / 4.28e12 * 1e3;
    const double matrix_ms =
        static_cast<double>(problem->operations) * problem->matrix_products / 790e12 * 1e3;
    const double expected = ceiling_ms.at(problem->id);
    EXPECT_NEAR(std::max(copy_ms, matrix_ms), expected, 0.03 * expected) << problem->id;
  }
}

TEST(Catalog, FewestOperationsAreThoseOfTheBestMethodKnown) {
  const auto share = [](const char* id) {
    const Problem& problem = *find_problem(id);
    return static_cast<double>(problem.fewest_matrix_operations) /
           static_cast<double>(problem.operations);
  };
  // Three levels of Strassen's product.
  EXPECT_DOUBLE_EQ(share("matmul_fp32"), 343.0 / 512.0);
  EXPECT_DOUBLE_EQ(share("matmul_fp16"), 343.0 / 512.0);
  // Winograd's method on the 4 x 4 shares of 11 x 11 taps.
  EXPECT_NEAR(share("conv2d"), 16.0 / 121.0, 1e-9);
  EXPECT_NEAR(share("conv2d_relu_maxpool"), 16.0 / 121.0, 1e-9);
  EXPECT_EQ(share("softmax"), 0.0);
  EXPECT_EQ(share("layernorm"), 0.0);
  EXPECT_EQ(share("attention_fp16"), 1.0);
  // What the mask leaves out is not counted.
  EXPECT_EQ(find_problem("attention_fp16_causal")->fewest_matrix_operations,
            4LL * 64 * (4096 * 4097 / 2) * 128);
  const auto fewest = [](std::int64_t m) {
    return sized_problem("matmul_fp16", {{"m", m}}).fewest_matrix_operations;
  };
  EXPECT_EQ(fewest(1024), 2LL * 1024 * 4096 * 4096 / 8 * 7);
  EXPECT_EQ(fewest(1023), 2LL * 1023 * 4096 * 4096);
}

TEST(Catalog, EveryProblemIsComplete) {
  for (const Problem& problem : catalog()) {
    SCOPED_TRACE(problem.id);
    EXPECT_FALSE(problem.title.empty());
    EXPECT_FALSE(problem.inputs().empty());
    EXPECT_FALSE(problem.outputs().empty());
    EXPECT_FALSE(problem.formula.empty());
    EXPECT_GT(problem.min_bytes, 0);
    EXPECT_LE(problem.least_bytes, problem.min_bytes);
    EXPECT_LE(problem.min_bytes, std::int64_t{8} << 30);
    EXPECT_LE(problem.fewest_matrix_operations, problem.operations);
    EXPECT_FALSE(problem.pytorch.empty());
    EXPECT_TRUE(problem.host_oracle);
    EXPECT_FALSE(problem.device_oracle.steps.empty());
    EXPECT_FALSE(problem.scaffold.steps.empty());
    for (const Tensor* output : problem.outputs()) {
      const bool is_exact = problem.tolerance.rms_error_over_rms == 0.0;
      EXPECT_EQ(is_exact, problem.tolerance.absolute == 0.0);
      if (is_exact || output->comparison != Comparison::close) continue;
      // Zeros have a relative error of 1 in the root mean square.
      EXPECT_LT(problem.tolerance.rms_error_over_rms, 0.1);
      EXPECT_GE(problem.tolerance.max_error_over_rms, problem.tolerance.rms_error_over_rms);
      EXPECT_LT(problem.tolerance.max_error_over_rms, 1.0);
    }
  }
}

TEST(Catalog, StressCasesNameInputs) {
  for (const Problem& problem : catalog()) {
    for (const StressCase& stress : problem.stress_cases) {
      EXPECT_FALSE(stress.inputs.empty()) << problem.id << " " << stress.name;
      for (const auto& [name, distribution] : stress.inputs) {
        const Tensor* tensor = problem.find_tensor(name);
        ASSERT_NE(tensor, nullptr) << problem.id << " " << stress.name << " " << name;
        EXPECT_EQ(tensor->role, Role::input) << problem.id << " " << stress.name << " " << name;
      }
    }
  }
}

void expect_launchable(const Problem& problem, const Program& program) {
  std::set<std::string> known = {"violation"};
  for (const Tensor& tensor : problem.tensors) known.insert(tensor.name);
  for (const Tensor* output : problem.outputs()) known.insert(truth_buffer(output->name));
  for (const Workspace& workspace : program.workspaces) known.insert(workspace.name);
  for (const Step& step : program.steps) {
    const auto* launch = std::get_if<KernelLaunch>(&step);
    if (!launch) continue;
    EXPECT_NE(program.source.find(" " + launch->kernel + "("), std::string::npos) << launch->kernel;
    EXPECT_GE(launch->grid[0].count, 1);
    EXPECT_LE(launch->grid[0].count, 2147483647);
    for (const int dimension : {1, 2}) {
      EXPECT_GE(launch->grid[dimension].count, 1) << launch->kernel;
      EXPECT_LE(launch->grid[dimension].count, 65535) << launch->kernel;
    }
    for (const Argument& argument : launch->args) {
      if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
        EXPECT_TRUE(known.contains(buffer->buffer)) << launch->kernel << " " << buffer->buffer;
      }
    }
  }
}

TEST(Catalog, WhatIsMadeFitsADevice) {
  for (const Problem& problem : catalog()) {
    SCOPED_TRACE(problem.id);
    expect_launchable(problem, problem.device_oracle);
    expect_launchable(problem, problem.scaffold);
    expect_launchable(problem, problem.making);
    for (const Invariant& invariant : problem.invariants) {
      expect_launchable(problem, invariant.program);
      EXPECT_GE(invariant.bound, 0.0);
    }
  }
}

TEST(Catalog, EveryDefinitionRunsOnTheHostAtASmallSize) {
  for (const Problem& problem : catalog()) {
    SCOPED_TRACE(problem.id);
    const Result<Problem> small = small_instance(problem);
    if (!small) {
      ADD_FAILURE() << small.error().message;
      continue;
    }
    const HostInputs outputs = small->host_oracle(host_inputs(*small, 3));
    for (const Tensor* output : small->outputs()) {
      const std::vector<double>& values = outputs.at(output->name);
      ASSERT_EQ(static_cast<std::int64_t>(values.size()), output->elements());
      EXPECT_TRUE(std::none_of(values.begin(), values.end(), [](double value) {
        return std::isnan(value);
      })) << output->name;
    }
  }
}

}  // namespace
}  // namespace rekernel

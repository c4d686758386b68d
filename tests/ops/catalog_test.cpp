#include "harness/problems/catalog.h"

#include "ops/operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace rekernel {
namespace {

TEST(Catalog, HasTheEightProblemsInPublishedOrder) {
  std::vector<std::string> ids;
  for (const Problem& problem : catalog()) ids.push_back(problem.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"matmul_fp32", "conv2d", "softmax", "layernorm",
                                           "conv2d_relu_maxpool", "matmul_fp16", "attention_fp16",
                                           "attention_fp16_causal"}));
}

TEST(Catalog, IsSearchedById) {
  for (const Problem& problem : catalog()) EXPECT_EQ(find_problem(problem.id), &problem);
  EXPECT_EQ(find_problem("conv3d"), nullptr);
  EXPECT_EQ(find_problem(""), nullptr);
}

TEST(Catalog, OutputShapes) {
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(find_problem("matmul_fp32")->output().shape, (Shape{4096, 4096}));
  EXPECT_EQ(find_problem("conv2d")->output().shape, (Shape{100, 96, 55, 55}));
  EXPECT_EQ(find_problem("softmax")->output().shape, (Shape{4096, 65536}));
  EXPECT_EQ(find_problem("layernorm")->output().shape, (Shape{16, 64, 256, 256}));
  EXPECT_EQ(find_problem("conv2d_relu_maxpool")->output().shape, (Shape{100, 96, 27, 27}));
  EXPECT_EQ(find_problem("attention_fp16")->output().shape, (Shape{4, 16, 4096, 128}));
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
  for (const Problem& problem : catalog()) {
    const double copy_ms = static_cast<double>(problem.min_bytes) / 4.28e12 * 1e3;
    const double matrix_ms =
        static_cast<double>(problem.operations) * problem.matrix_products / 790e12 * 1e3;
    const double expected = ceiling_ms.at(problem.id);
    EXPECT_NEAR(std::max(copy_ms, matrix_ms), expected, 0.03 * expected) << problem.id;
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
  EXPECT_DOUBLE_EQ(share("conv2d"), 16.0 / 121.0);
  EXPECT_DOUBLE_EQ(share("conv2d_relu_maxpool"), 16.0 / 121.0);
  EXPECT_EQ(share("softmax"), 0.0);
  EXPECT_EQ(share("layernorm"), 0.0);
  EXPECT_EQ(share("attention_fp16"), 1.0);
  // What the mask leaves out is not counted.
  EXPECT_EQ(find_problem("attention_fp16_causal")->fewest_matrix_operations,
            4LL * 64 * (4096 * 4097 / 2) * 128);
  EXPECT_EQ(make_matmul_fp16(1024, 4096, 4096).fewest_matrix_operations,
            2LL * 1024 * 4096 * 4096 / 8 * 7);
  EXPECT_EQ(make_matmul_fp16(1023, 4096, 4096).fewest_matrix_operations, 2LL * 1023 * 4096 * 4096);
}

TEST(Catalog, EveryProblemIsComplete) {
  for (const Problem& problem : catalog()) {
    SCOPED_TRACE(problem.id);
    EXPECT_FALSE(problem.title.empty());
    EXPECT_EQ(std::count_if(problem.tensors.begin(), problem.tensors.end(),
                            [](const Tensor& tensor) { return tensor.role == Role::output; }),
              1);
    EXPECT_GT(problem.operations, 0);
    EXPECT_FALSE(problem.pytorch.empty());
    EXPECT_TRUE(problem.host_oracle);
    EXPECT_FALSE(problem.device_oracle.source.empty());
    EXPECT_FALSE(problem.device_oracle.steps.empty());
    EXPECT_EQ(problem.tolerance.absolute, 1e-2);
    EXPECT_EQ(problem.tolerance.relative, 1e-2);
    // Zeros have a relative error of 1 in the root mean square.
    EXPECT_GT(problem.tolerance.rms_error_over_rms, 0.0);
    EXPECT_LE(problem.tolerance.rms_error_over_rms, 2e-3);
    EXPECT_GT(problem.tolerance.max_error_over_rms, problem.tolerance.rms_error_over_rms);
    EXPECT_LT(problem.tolerance.max_error_over_rms, 1.0);
  }
}

TEST(Catalog, StressCasesNameInputs) {
  for (const Problem& problem : catalog()) {
    EXPECT_GE(problem.stress_cases.size(), 4u) << problem.id;
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
  std::int64_t workspace_bytes = 0;
  for (const Workspace& workspace : program.workspaces) workspace_bytes += workspace.bytes;
  EXPECT_LE(workspace_bytes, 1'200'000'000);
  const auto is_known = [&](const std::string& name) {
    return problem.find_tensor(name) != nullptr || name == "truth" || name == "violation" ||
           std::any_of(program.workspaces.begin(), program.workspaces.end(),
                       [&](const Workspace& workspace) { return workspace.name == name; });
  };
  for (const Step& step : program.steps) {
    const auto& launch = std::get<KernelLaunch>(step);
    EXPECT_NE(program.source.find(" " + launch.kernel + "("), std::string::npos) << launch.kernel;
    EXPECT_GE(launch.grid[0].count, 1);
    EXPECT_LE(launch.grid[0].count, 2147483647);
    for (const int dimension : {1, 2}) {
      EXPECT_GE(launch.grid[dimension].count, 1) << launch.kernel;
      EXPECT_LE(launch.grid[dimension].count, 65535) << launch.kernel;
    }
    for (const Argument& argument : launch.args) {
      if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
        EXPECT_TRUE(is_known(buffer->buffer)) << launch.kernel << " " << buffer->buffer;
      }
    }
  }
}

TEST(Catalog, OraclesAndInvariantsFitADevice) {
  for (const Problem& problem : catalog()) {
    SCOPED_TRACE(problem.id);
    expect_launchable(problem, problem.device_oracle);
    for (const Invariant& invariant : problem.invariants) {
      expect_launchable(problem, invariant.program);
      EXPECT_GT(invariant.bound, 0.0);
    }
  }
}

}  // namespace
}  // namespace rekernel

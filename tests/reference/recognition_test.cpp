#include <gtest/gtest.h>

#include <cmath>

#include "harness/problems/catalog.h"
#include "harness/problems/small_instance.h"
#include "ops/inputs.h"
#include "reference/shapes.h"
#include "tests/reference/plain_library.h"

namespace rekernel {
namespace {

TEST(Recognition, ShapesComputeWhatDefinitionsSay) {
  int compared = 0;
  for (const Problem& problem : catalog()) {
    if (shapes_of(problem).empty()) {
      std::printf("none %s\n", problem.id.c_str());
      continue;
    }
    const Result<Problem> small = small_instance(problem);
    ASSERT_TRUE(small) << small.error().message;
    const std::vector<LibraryShape> shapes = shapes_of(*small);
    EXPECT_EQ(shapes.size(), shapes_of(problem).size()) << problem.id;
    const HostInputs inputs = host_inputs(*small, 7);
    const std::vector<double> expected =
        small->host_oracle(inputs).at(small->outputs().front()->name);
    for (const LibraryShape& shape : shapes) {
      const std::vector<double> actual = plain_library(shape, inputs);
      ASSERT_EQ(actual.size(), expected.size()) << problem.id;
      for (std::size_t i = 0; i < actual.size(); ++i) {
        ASSERT_NEAR(actual[i], expected[i], 1e-9 * (1 + std::fabs(expected[i])))
            << problem.id << " at " << i;
      }
      ++compared;
      std::printf("%zu %s\n", shape.index(), problem.id.c_str());
    }
  }
  std::printf("%d\n", compared);
}

}  // namespace
}  // namespace rekernel

#include "ops/stress.h"

#include <algorithm>
#include <bit>

namespace rekernel {

void add_uneven_cases(Problem& problem, std::int64_t row_elements) {
  const Tensor& input = problem.tensors.front();
  const Distribution& own = input.distribution;
  const double far = problem.matrix_products > 0 ? 50.0 : 1000.0;
  const std::int64_t rows = input.elements() / row_elements;
  const auto add = [&](const std::string& name, const Distribution& distribution) {
    problem.stress_cases.push_back({input.name + "_" + name, {{input.name, distribution}}});
  };
  Distribution outliers = own;
  const auto stretch =
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(row_elements, 4)));
  outliers.outliers = {static_cast<std::int64_t>(stretch), own.a + 200.0 * own.b};
  add("one_of_200_in_each_row", outliers);
  Distribution zero = own;
  zero.odd_row = {rows, row_elements, 0.0, 0.0};
  add("one_row_of_zeros", zero);
  Distribution shifted = own;
  shifted.odd_row = {rows, row_elements, own.a + far * own.b, own.b};
  add("one_row_far_off", shifted);
}

}  // namespace rekernel

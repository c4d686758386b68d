#include "harness/problems/stress_rule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

namespace rekernel {

namespace {

constexpr std::size_t most_scaled_inputs = 3;

bool is_drawn_freely(const Tensor& tensor) {
  const bool kind = tensor.distribution.kind == Distribution::Kind::normal ||
                    tensor.distribution.kind == Distribution::Kind::uniform;
  return tensor.role == Role::input && float_format(tensor.dtype) && kind && !tensor.shape.empty();
}

/// Scales at which squares and sums of a type stay normal numbers.
struct Scales {
  const char* down_name;
  double down;
  const char* up_name;
  double up;
};

Scales scales_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {"scaled_1e-2", 1e-2, "scaled_50", 50};
    case DType::f8e4m3:
    case DType::f8e5m2:
      return {"scaled_0.125", 0.125, "scaled_8", 8};
    default:
      return {"scaled_1e-4", 1e-4, "scaled_1e4", 1e4};
  }
}

Distribution scaled(Distribution distribution, double by) {
  distribution.a *= by;
  distribution.b *= by;
  return distribution;
}

Distribution constant(double value) { return {Distribution::Kind::constant, value}; }

/// Deviations of a distribution that has them.
double spread(const Distribution& distribution) {
  return distribution.kind == Distribution::Kind::normal ? distribution.b
                                                         : (distribution.b - distribution.a) / 2;
}

double middle(const Distribution& distribution) {
  return distribution.kind == Distribution::Kind::normal ? distribution.a
                                                         : (distribution.a + distribution.b) / 2;
}

/// A sum that ends one element early misses what outweighs the rest of the row, whose sum has the
/// square root of its length as deviation.
template <class Add>
void add_heavy_ends(const Tensor& input, std::int64_t row_elements, const Add& add) {
  if (row_elements < 2) return;
  const double length = static_cast<double>(row_elements);
  const double size = std::max({200.0 * spread(input.distribution),
                                2.0 * std::sqrt(length) * spread(input.distribution),
                                length * std::fabs(middle(input.distribution))});
  Distribution heavy = input.distribution;
  heavy.ends = {row_elements, middle(input.distribution) + size};
  const FloatFormat* format = float_format(input.dtype);
  if (heavy.ends->value < format->largest) add("heavy_end_of_each_row", heavy);
}

}  // namespace

const Tensor* first_float_input(const Problem& problem) {
  for (const Tensor& tensor : problem.tensors) {
    if (is_drawn_freely(tensor)) return &tensor;
  }
  return nullptr;
}

void add_stress_by_rule(Problem& problem) {
  const Tensor* first = first_float_input(problem);
  if (!first) return;
  std::size_t inputs = 0;
  StressCase constants{"constant", {}};
  for (const Tensor& tensor : problem.tensors) {
    if (!is_drawn_freely(tensor)) continue;
    const Distribution& own = tensor.distribution;
    constants.inputs[tensor.name] = constant(middle(own) + 0.7 * spread(own));
    if (++inputs > most_scaled_inputs) continue;
    const Scales scales = scales_of(tensor.dtype);
    problem.stress_cases.push_back(
        {tensor.name + "_" + scales.down_name, {{tensor.name, scaled(own, scales.down)}}});
    problem.stress_cases.push_back(
        {tensor.name + "_" + scales.up_name, {{tensor.name, scaled(own, scales.up)}}});
  }
  problem.stress_cases.push_back(std::move(constants));
  problem.stress_cases.push_back({"zeros", {{first->name, constant(0.0)}}});
}

void add_uneven_stress(Problem& problem, std::int64_t row_elements) {
  const Tensor* input = first_float_input(problem);
  if (!input) return;
  const Distribution& own = input->distribution;
  if (row_elements == 0) row_elements = input->shape.back();
  const auto add = [&](const std::string& name, const Distribution& distribution) {
    problem.stress_cases.push_back({input->name + "_" + name, {{input->name, distribution}}});
  };
  add_heavy_ends(*input, row_elements, add);
  if (own.kind != Distribution::Kind::normal) return;
  const std::int64_t rows = input->elements() / row_elements;
  if (row_elements < 4 || rows < 2) return;
  // Products of rows with operands of 11 bits are off by 2^-11 of the row's mean, which cancels
  // elsewhere: there the row is 50 deviations off.
  const double far = problem.matrix_products > 0 ? 50.0 : 1001.3;
  Distribution outliers = own;
  const auto stretch = std::min<std::uint64_t>(
      std::bit_floor(static_cast<std::uint64_t>(row_elements)), std::uint64_t{1} << 31);
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

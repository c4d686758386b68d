#include "harness/problems/tolerance_class.h"

#include <array>
#include <string_view>

namespace rekernel {

namespace {

/// Relative to the truth's root mean square: of the error's and of the largest error.
struct Bounds {
  double rms;
  double largest;
};

struct Class {
  std::string_view name;
  Bounds bounds;
  /// Where most of the work is contractions: what operands split in two narrow ones still reach.
  Bounds with_matrix_unit;
};

// FP32 without a matrix unit: arithmetic and sums of sums give 1e-6 of the rms, results rounded to
// FP16 1.6e-4, to BF16 1.1e-3. With one: two FP16 products reach 1.4e-5 and 1e-4 at a depth of
// 4096, a single FP16 or TF32 product 3e-4 and 1.7e-3. FP16: rounding a result is 1.6e-4 to 2.8e-4
// of it, half a unit in the last place of the largest, 6 times the rms, 2e-3; BF16 has 8 times
// that, FP8 (e4m3) 128 times.
constexpr std::array<Class, 5> classes = {{
    {"fp32", {2e-5, 1e-3}, {1e-4, 1e-3}},
    {"fp16", {7e-4, 1e-2}, {9e-4, 2e-2}},
    {"bf16", {5e-3, 8e-2}, {5e-3, 8e-2}},
    {"fp8", {6e-2, 0.5}, {6e-2, 0.5}},
    {"exact", {0, 0}, {0, 0}},
}};

/// Beyond this share of the definition's operations, contractions are most of the work.
constexpr double most_of_the_work = 0.5;

bool is_for_matrix_units(const definition::Cost& cost) {
  return cost.matrix_operations > most_of_the_work * cost.operations;
}

}  // namespace

std::optional<Tolerance> tolerance_of_class(std::string_view name, const definition::Cost& cost) {
  for (const Class& one : classes) {
    if (one.name != name) continue;
    const Bounds& bounds = is_for_matrix_units(cost) ? one.with_matrix_unit : one.bounds;
    Tolerance tolerance;
    tolerance.rms_error_over_rms = bounds.rms;
    tolerance.max_error_over_rms = bounds.largest;
    if (name == "exact") tolerance.absolute = tolerance.relative = 0;
    if (name == "fp8") tolerance.absolute = tolerance.relative = 0.1;
    return tolerance;
  }
  return std::nullopt;
}

int products_within(const Tolerance& tolerance, const definition::Cost& cost) {
  constexpr double of_one_product = 2.5e-4;
  if (!is_for_matrix_units(cost)) return 0;
  return tolerance.rms_error_over_rms < of_one_product ? 2 : 1;
}

}  // namespace rekernel

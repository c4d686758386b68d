#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/definition/cost.h"
#include "ops/definition/definition.h"
#include "ops/definition/portions.h"
#include "ops/program.h"

namespace rekernel::definition {

/// What computes a statement by the float64 matrix unit: kernels that copy both factors into padded
/// matrices, and one that multiplies them and finishes each element.
struct ProductCode {
  std::string source;
  std::int64_t left_bytes = 0;  ///< of the workspaces `product_left` and `product_right`
  std::int64_t right_bytes = 0;
  /// Launches for the items from `first` up to `end`; without portions, 0 and 0.
  std::vector<Step> steps(std::int64_t first, std::int64_t end) const;

  // What the launches are made of.
  struct Part {
    std::string kernel;
    std::vector<Argument> arguments;  ///< before the scalars
  };
  Part left, right, product;
  std::int64_t rows = 0, columns = 0, depth = 0;
  std::int64_t matrices = 0;  ///< all of them, of an item where there are portions
  std::int64_t matrices_at_once = 0;
  std::int64_t columns_at_once = 0;
};

/// None where a statement is no large product of two factors (contraction_of).
std::optional<ProductCode> product_code(const Definition& definition,
                                        const CheckedStatement& checked, const Portions& portions,
                                        bool in_portions);

}  // namespace rekernel::definition

#pragma once

#include <optional>
#include <string>

#include "ops/definition/cost.h"
#include "ops/definition/definition.h"
#include "ops/definition/portions.h"
#include "ops/program.h"

namespace rekernel::definition {

/// A slow candidate's kernel for a statement that is a product of two factors: a block makes a tile
/// of the result from tiles in shared memory, for all items or for a portion of them.
struct TileCode {
  KernelLaunch launch;        ///< all of the grid but its depth
  std::int64_t matrices = 0;  ///< all of them, of an item where there are portions
};

/// Adds the kernel, which is called `kernel`, to the source; none where a statement is no product
/// that is worth tiles (contraction_of).
std::optional<TileCode> tile_code(const Definition& definition, const CheckedStatement& checked,
                                  const Portions& portions, bool in_portions,
                                  const std::string& kernel, std::string& source);

}  // namespace rekernel::definition

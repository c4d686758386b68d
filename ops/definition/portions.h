#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/definition/definition.h"

namespace rekernel::definition {

/// Statements whose intermediate results are too large to be there at once run for one portion of
/// their outermost indices after the other. Those indices, which all of them share, make items.
struct Portions {
  std::size_t first_statement = 0;
  std::size_t end_statement = 0;  ///< the same as the first where nothing is cut
  std::size_t indices = 0;        ///< how many of the outermost ones make an item
  std::int64_t items = 0;
  std::int64_t items_at_once = 0;
  /// Elements of an item, by the tensors that are there for a portion alone.
  std::vector<std::pair<std::string, std::int64_t>> tensors;

  bool has(std::size_t statement) const {
    return statement >= first_statement && statement < end_statement;
  }
  /// 0 for tensors that are there as a whole.
  std::int64_t item_elements(const std::string& tensor) const;
};

/// How to keep intermediate results of `element_bytes` each within `bytes`; nothing is cut where
/// they fit, or where no statement shares its outermost indices with the others.
Portions portions_of(const Definition& definition, std::int64_t element_bytes, std::int64_t bytes);

}  // namespace rekernel::definition

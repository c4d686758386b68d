#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/definition/definition.h"

namespace rekernel::definition {

/// What a definition's work is, counted from its text.
struct Cost {
  /// Additions, multiplications, divisions, comparisons by reducers and functions, one each. Scans
  /// are linear; terms that a condition on indices alone leaves out are not counted.
  double operations = 0;
  /// Those of contractions, two for each term: what a matrix unit can do.
  double matrix_operations = 0;
  /// The fewest with which a method is known to give the same contractions (Strassen's,
  /// Winograd's), as far as their elements are needed.
  double fewest_matrix_operations = 0;
  /// The most operations of a single statement, and which it is.
  double worst = 0;
  std::size_t worst_statement = 0;
};

Cost cost_of(const Definition& definition);

/// A sum of products of two tensors' elements, seen as a matrix product: indices of the left side
/// that only the first factor has (rows), only the second has (columns), and both (batch).
struct Contraction {
  const Expression* sum = nullptr;
  /// The factors of the body, of which the first group has no index of `columns`, the second none
  /// of `rows`.
  std::vector<const Expression*> left, right;
  std::vector<Index> batch, rows, columns;
};

/// The only contraction of a statement, if it has one, and no other reduction beside it.
std::optional<Contraction> contraction_of(const CheckedStatement& checked);

/// A share of each tensor's elements, at most that which outputs certainly depend on, whatever the
/// values are: conditions on indices leave their share, conditions on values nothing. An input that
/// nothing reads has none.
std::map<std::string, double, std::less<>> shares_needed(const Definition& definition);

}  // namespace rekernel::definition

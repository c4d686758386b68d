#pragma once

#include <string>
#include <vector>

#include "ops/definition/cost.h"
#include "ops/definition/expression_code.h"

namespace rekernel::definition {

/// A contraction's terms that a condition leaves out are zeros of the factor that has the
/// condition's indices.
struct FactorConditions {
  std::vector<const Expression*> left, right;
};
/// None where a condition needs both factors' indices.
std::optional<FactorConditions> conditions_of_factors(const Contraction& contraction);

bool has_any(const Expression& e, const std::vector<Index>& indices);
std::int64_t size_of(const std::vector<Index>& indices);

/// Whether the first tensor of a factor has the contraction's depth innermost.
bool ends_in_depth(const Contraction& contraction, const std::vector<const Expression*>& factors);

/// Writes indices from a number that counts them, the last one fastest.
void decode_indices(ExpressionCode& code, const std::vector<Index>& indices,
                    const std::string& number);

/// Reads of a statement's right side that stand beside the contraction's sum.
std::vector<const Expression*> reads_around(const Expression& right, const Expression* sum);

/// Whether a statement's outermost indices, of which portions are made, are the outermost matrices.
bool has_items_outermost(const Contraction& contraction, const Statement& statement,
                         const Portions& portions);

}  // namespace rekernel::definition

#include "ops/definition/factors.h"

#include <algorithm>

namespace rekernel::definition {

std::int64_t size_of(const std::vector<Index>& indices) {
  std::int64_t product = 1;
  for (const Index& index : indices) product *= index.extent;
  return product;
}

bool has_any(const Expression& e, const std::vector<Index>& indices) {
  return std::any_of(indices.begin(), indices.end(),
                     [&](const Index& index) { return mentions(e, index.name); });
}

std::optional<FactorConditions> conditions_of_factors(const Contraction& contraction) {
  FactorConditions conditions;
  if (contraction.sum->operands.size() < 2) return conditions;
  for (const Expression* part : conjuncts(contraction.sum->operands[1])) {
    const bool of_rows = has_any(*part, contraction.rows),
               of_columns = has_any(*part, contraction.columns);
    if (of_rows && of_columns) return std::nullopt;
    (of_columns ? conditions.right : conditions.left).push_back(part);
  }
  return conditions;
}

bool ends_in_depth(const Contraction& contraction, const std::vector<const Expression*>& factors) {
  bool depth = false;
  for_each(*factors[0], [&](const Expression& e) {
    if (e.op != Operator::read || e.operands.empty()) return;
    const Expression& last = e.operands[e.operands.size() - (e.has_otherwise ? 2 : 1)];
    depth = has_any(last, contraction.sum->indices) && !has_any(last, contraction.rows) &&
            !has_any(last, contraction.columns);
  });
  return depth;
}

void decode_indices(ExpressionCode& code, const std::vector<Index>& indices,
                    const std::string& number) {
  if (indices.empty()) return;
  const std::string rest = indices.size() > 1 ? "rest_" + number : number;
  if (indices.size() > 1) code.line("long long " + rest + " = " + number + ";");
  for (std::size_t i = indices.size(); i-- > 0;) {
    const std::string place = i > 0 ? rest + " % " + indices[i].extent_text : rest;
    code.line("const index_t " + indices[i].name + " = static_cast<index_t>(" + place + ");");
    if (i > 0) code.line(rest + " /= " + indices[i].extent_text + ";");
  }
}

std::vector<const Expression*> reads_around(const Expression& right, const Expression* sum) {
  if (&right == sum) return {};
  if (right.op == Operator::read) return {&right};
  std::vector<const Expression*> found;
  for (const Expression& operand : right.operands) {
    for (const Expression* read : reads_around(operand, sum)) found.push_back(read);
  }
  return found;
}

bool has_items_outermost(const Contraction& contraction, const Statement& statement,
                         const Portions& portions) {
  if (contraction.batch.size() < portions.indices) return false;
  for (std::size_t k = 0; k < portions.indices; ++k) {
    if (contraction.batch[k].name != statement.indices[k].name) return false;
  }
  return true;
}

}  // namespace rekernel::definition

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rekernel::definition {

// A definition as it was written: ops/problems/README.md has the grammar.

enum class Operator {
  // Leaves.
  number,
  name,  ///< an index, an axis, a constant or a scalar tensor
  // Reads an element of a tensor: operands are the subscripts, then, if has_otherwise, the value
  // that stands for what lies outside.
  read,
  call,       ///< of the function `name`
  reduction,  ///< by the reducer `name` over `indices`: the body, then, if any, the condition
  // One operand.
  negate,
  logical_not,
  // Two operands.
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
};

/// What an expression's values are. Conditions count as 0 or 1, integers as reals.
enum class Type { boolean, integer, real };

/// The values that an integer expression can have, both ends included.
struct Interval {
  std::int64_t low = 0;
  std::int64_t high = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

struct Expression;

/// A name that runs from 0 to an end.
struct Index {
  std::string name;
  std::vector<Expression> end;  ///< what the text says of it: one expression or none
  std::int64_t extent = 0;      ///< set by the analysis
  std::string extent_text;      ///< the extent in C++, of the names in problem.h; set as well
  int column = 0;               ///< in the statement, from 1
};

struct Expression {
  Operator op = Operator::number;
  int column = 0;              ///< of its first character in the statement, from 1
  std::string name;            ///< of a name, tensor, function or reducer
  double value = 0;            ///< of a number
  bool has_otherwise = false;  ///< of a read
  std::vector<Index> indices;  ///< of a reduction
  std::vector<Expression> operands;
  // Set by the analysis.
  Type type = Type::real;
  Interval interval;            ///< of integers and conditions
  bool may_be_outside = false;  ///< of a read: some subscript may lie outside of the tensor

  friend bool operator==(const Expression& a, const Expression& b);
};

/// `name[indices] = right`.
struct Statement {
  std::string text;
  std::string name;
  int column = 1;
  std::vector<Index> indices;
  Expression right;
};

/// The two operands of which `conjunction` is made are both needed: its parts, from left to right.
std::vector<const Expression*> conjuncts(const Expression& condition);

/// Whether a name stands anywhere in the expression, as a leaf or as what is read.
bool mentions(const Expression& expression, std::string_view name);

/// Calls `visit` with every expression in it, itself first, ends of indices too.
template <class Visitor>
void for_each(const Expression& expression, const Visitor& visit) {
  visit(expression);
  for (const Index& index : expression.indices) {
    for (const Expression& end : index.end) for_each(end, visit);
  }
  for (const Expression& operand : expression.operands) for_each(operand, visit);
}

/// How an operator is written; empty for those that are not written between operands.
std::string_view symbol(Operator op);

/// As it would be written, with the parentheses that it needs.
std::string text_of(const Expression& expression);
std::string text_of(const Statement& statement);

}  // namespace rekernel::definition

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/definition/expression.h"
#include "ops/program.h"
#include "ops/result.h"

namespace rekernel::definition {

/// What statements read and define.
struct TensorInfo {
  enum class Role { input, output, intermediate };

  std::string name;
  Role role = Role::intermediate;
  std::optional<DType> dtype;             ///< none of intermediates
  std::vector<std::int64_t> extents;      ///< row-major, outermost first; none of a scalar
  std::vector<std::string> extent_texts;  ///< the same in C++, of the names in problem.h
  Type type = Type::real;
  Interval interval;       ///< of integers and conditions: the values that it can have
  bool is_defined = true;  ///< false of an output whose statement is still to come

  std::int64_t elements() const;
};

/// A statement that was found sound.
struct CheckedStatement {
  Statement statement;
  /// Which index of the left side a recurrence runs along; none of others.
  std::optional<std::size_t> recurrence;
  /// Which index of the left side a scan runs along: the right side is one reduction over one
  /// index, whose condition compares it with that one, which its body does not have.
  std::optional<std::size_t> scan;
};

/// The names that statements can use, and the statements so far.
class Definition {
 public:
  /// Integer sizes; names are unique over axes, constants and tensors. The error says which is not.
  Result<Ok> add_axis(const std::string& name, std::int64_t size);
  Result<Ok> add_constant(const std::string& name, double value);
  Result<Ok> add_tensor(TensorInfo tensor);

  /// Errors begin with "column N: ".
  Result<Ok> add_statement(std::string_view text);
  Result<Ok> add_statement(Statement statement);
  /// Statements that were made of the checked ones.
  void replace_statements(std::vector<CheckedStatement> statements) {
    statements_ = std::move(statements);
  }
  /// Whether all outputs are defined and all that was defined is used, inputs too.
  Result<Ok> finish(bool inputs_too = true) const;

  /// The value of an expression of axes alone. Errors begin with "column N: ".
  Result<std::int64_t> integer(std::string_view text) const;
  /// The same, which is sound, as C++.
  std::string cpp(std::string_view text) const;
  /// The value of a condition of axes alone.
  Result<bool> condition(std::string_view text) const;
  /// The value of an expression of axes and constants.
  Result<double> real(std::string_view text) const;

  /// Whether something new can be called so.
  Result<Ok> check_name(const std::string& name) const;

  const std::vector<CheckedStatement>& statements() const { return statements_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;
  const std::vector<std::pair<std::string, std::int64_t>>& axes() const { return axes_; }
  const std::vector<std::pair<std::string, double>>& constants() const { return constants_; }

 private:
  Result<Expression> constant_expression(std::string_view text, Type type) const;

  std::vector<std::pair<std::string, std::int64_t>> axes_;
  std::vector<std::pair<std::string, double>> constants_;
  std::vector<TensorInfo> tensors_;
  std::vector<CheckedStatement> statements_;
};

/// The names of the functions and how many operands each takes.
const std::map<std::string, int, std::less<>>& functions();

/// `condition` as a bound of the index `name`: `name < bound`, `name <= bound`, `name > bound` or
/// `name >= bound`, the index standing alone on either side, and not in the bound.
struct Bound {
  Operator op;
  const Expression* bound;
};
std::optional<Bound> bound_of(const Expression& condition, std::string_view name);

}  // namespace rekernel::definition

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "ops/definition/definition.h"

namespace rekernel::definition {

/// An expression of axes in C++, where it has no negative parts.
std::string cpp_text(const Expression& expression);

/// Finds out whether a statement is sound, and the types and ranges of all that is in it. Serves
/// for one statement or expression.
class Analysis {
 public:
  explicit Analysis(const Definition& scope) : scope_(scope) {}

  /// Errors begin with "column N: ".
  Result<CheckedStatement> check(Statement statement);
  /// What `check` found its left side to be.
  const TensorInfo& defined() const { return defined_; }

  /// An expression without indices and tensors. What is asked for is an integer, a condition or any
  /// number.
  Result<Ok> check_constant(Expression& expression, Type type);

 private:
  /// The values that indices have at the present place.
  using Ranges = std::map<std::string, Interval, std::less<>>;

  void find_left_extents(Statement& statement);
  void check_elements(const Statement& statement);
  void find_extent(Index& index, const std::vector<const Expression*>& uses, bool of_output);
  void enter(const Index& index);
  void leave(const Index& index) { indices_.erase(index.name); }
  void visit(Expression& expression);
  void visit_name(Expression& expression);
  void visit_read(Expression& expression);
  void visit_own_read(const Expression& expression);
  void visit_call(Expression& expression);
  void visit_where(Expression& expression);
  void visit_reduction(Expression& expression);
  /// Where a condition holds, or does not, indices that it compares have fewer values.
  void narrow(const Expression& condition, bool holds);
  void visit_operator(Expression& expression);
  void set_range(Expression& expression);
  void want_integer(const Expression& expression, const std::string& what);
  void want_condition(const Expression& expression, const std::string& what);
  void find_scan(CheckedStatement& checked) const;
  void fail(int column, const std::string& problem);

  const Definition& scope_;
  const Statement* statement_ = nullptr;
  Ranges indices_;
  TensorInfo defined_;
  std::optional<std::size_t> recurrence_;
  std::optional<Error> error_;
};

}  // namespace rekernel::definition

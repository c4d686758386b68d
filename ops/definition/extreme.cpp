#include "ops/definition/extreme.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "ops/definition/device_code.h"
#include "ops/definition/parser.h"

namespace rekernel::definition {

namespace {

/// The axes, constants, inputs and outputs of a definition, and the truths of its outputs, all as
/// what can be read. An output that a candidate wrote can have any value of its type.
Definition as_read(const Definition& definition) {
  Definition scope;
  const auto checked = [](const Result<Ok>& added) {
    if (!added) throw std::logic_error("as_read: " + added.error().message);
  };
  for (const auto& [name, size] : definition.axes()) checked(scope.add_axis(name, size));
  for (const auto& [name, value] : definition.constants()) checked(scope.add_constant(name, value));
  for (TensorInfo tensor : definition.tensors()) {
    if (tensor.role == TensorInfo::Role::intermediate) continue;
    const bool is_output = tensor.role == TensorInfo::Role::output;
    TensorInfo truth = tensor;
    tensor.role = TensorInfo::Role::input;
    tensor.is_defined = true;
    if (is_output && integer_range(*tensor.dtype)) {
      const IntegerRange range = *integer_range(*tensor.dtype);
      tensor.interval = {range.low, range.high};
    }
    checked(scope.add_tensor(tensor));
    if (!is_output) continue;
    truth.name = truth_buffer(truth.name);
    truth.role = TensorInfo::Role::input;
    truth.is_defined = true;
    truth.dtype = DType::f64;
    checked(scope.add_tensor(truth));
  }
  return scope;
}

Invariant largest_of(Definition scope, const Statement& statement, const std::string& name,
                     double bound) {
  const std::string violations = statement.name;
  Statement largest;
  largest.name = "violation";
  TensorInfo result;
  result.name = "violation";
  result.role = TensorInfo::Role::output;
  result.dtype = DType::f64;
  result.is_defined = false;
  if (auto added = scope.add_tensor(result); !added) throw std::logic_error(added.error().message);
  std::string indices;
  for (const Index& index : statement.indices)
    indices += (indices.empty() ? "" : ", ") + index.name;
  const std::string read = violations + (indices.empty() ? "" : "[" + indices + "]");
  const std::string text =
      "violation = " +
      (indices.empty() ? "abs(" + read + ")" : "max(" + indices + ") abs(" + read + ")");
  if (auto added = scope.add_statement(text); !added) throw std::logic_error(added.error().message);
  Invariant invariant;
  invariant.name = name;
  invariant.bound = bound;
  invariant.program = device_program(scope, Purpose::invariant);
  return invariant;
}

std::string left_indices(const Statement& statement) {
  std::string text;
  for (const Index& index : statement.indices) {
    text += (text.empty() ? "" : ", ") + index.name + " < " + std::to_string(index.extent);
  }
  return text.empty() ? "" : "[" + text + "]";
}

std::string own_read(const std::string& tensor, const Statement& statement) {
  std::string text;
  for (const Index& index : statement.indices) text += (text.empty() ? "" : ", ") + index.name;
  return tensor + (text.empty() ? "" : "[" + text + "]");
}

/// The expression with another in place of an index; reads get a value for what lies outside.
Expression at(Expression e, const std::string& index, const Expression& place) {
  if (e.op == Operator::name && e.name == index) return place;
  const bool moves = e.op == Operator::read && mentions(e, index);
  for (Expression& operand : e.operands) operand = at(std::move(operand), index, place);
  if (moves && !e.has_otherwise) {
    Expression none;
    none.op = Operator::name;
    none.name = "infinity";
    e.operands.push_back(none);
    e.has_otherwise = true;
  }
  return e;
}

}  // namespace

const CheckedStatement* extreme_statement(const Definition& definition, std::string_view output) {
  for (const CheckedStatement& checked : definition.statements()) {
    if (checked.statement.name != output) continue;
    const Expression& right = checked.statement.right;
    const bool is_extreme =
        right.op == Operator::reduction && (right.name == "argmax" || right.name == "argmin");
    if (!is_extreme) return nullptr;
    // What is compared has to be readable afterwards: inputs alone.
    bool of_inputs = true;
    for_each(right.operands[0], [&](const Expression& e) {
      if (e.op == Operator::read)
        of_inputs &= definition.find(e.name)->role == TensorInfo::Role::input;
    });
    return of_inputs ? &checked : nullptr;
  }
  return nullptr;
}

std::vector<Invariant> extreme_invariants(const Definition& definition, const std::string& output) {
  const CheckedStatement& checked = *extreme_statement(definition, output);
  const Statement& statement = checked.statement;
  const Expression& extreme = statement.right;
  const std::string& index = extreme.indices[0].name;
  const std::string own = own_read(output, statement),
                    truth = own_read(truth_buffer(output), statement);
  const auto value_at = [&](const std::string& place) {
    return text_of(at(extreme.operands[0], index, *parse_expression(place)));
  };
  const std::string extent = std::to_string(extreme.indices[0].extent);
  std::vector<std::pair<std::string, std::string>> texts;
  texts.emplace_back(output + ": what stands at the index is the extreme",
                     "violation_of_value" + left_indices(statement) + " = where(" + own +
                         " >= 0 and " + own + " < " + extent + ", where((" + value_at(own) +
                         ") == (" + value_at(truth) + "), 0.0, infinity), infinity)");
  if (checked.recurrence) {
    const Index& along = statement.indices[*checked.recurrence];
    Statement other = statement;
    other.indices[*checked.recurrence].name = "other_" + along.name;
    texts.emplace_back(output + ": no index comes twice",
                       "violation_of_order" + left_indices(statement) + " = sum(other_" +
                           along.name + " < " + std::to_string(along.extent) + " : other_" +
                           along.name + " != " + along.name + ") where(" + own_read(output, other) +
                           " == " + own + ", 1.0, 0.0)");
  }
  std::vector<Invariant> invariants;
  for (const auto& [name, text] : texts) {
    Result<Invariant> made = make_invariant(definition, name, text, 0.0);
    if (!made) throw std::logic_error("extreme_invariants: " + made.error().message + ": " + text);
    invariants.push_back(std::move(*made));
  }
  return invariants;
}

Result<Invariant> make_invariant(const Definition& definition, const std::string& name,
                                 std::string_view violation, double bound) {
  Definition scope = as_read(definition);
  if (auto added = scope.add_statement(violation); !added) return added.error();
  if (!scope.check_name("violation"))
    return Error{"column 1: expected another name than 'violation'"};
  const Statement statement = scope.statements().back().statement;
  return largest_of(std::move(scope), statement, name, bound);
}

}  // namespace rekernel::definition

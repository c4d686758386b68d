#include "ops/definition/definition.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "ops/definition/analysis.h"
#include "ops/definition/parser.h"
#include "ops/definition/scalar.h"

namespace rekernel::definition {

namespace {

constexpr std::size_t max_statements = 64;

const std::set<std::string, std::less<>>& reserved() {
  static const std::set<std::string, std::less<>> names = {
      "and", "or", "not", "else", "infinity", "sum", "product", "max", "min", "argmax", "argmin"};
  return names;
}

/// Names reach device code and Python as they are.
const std::set<std::string, std::less<>>& keywords() {
  static const std::set<std::string, std::less<>> names = {"alignas",
                                                           "alignof",
                                                           "and",
                                                           "and_eq",
                                                           "as",
                                                           "asm",
                                                           "assert",
                                                           "async",
                                                           "auto",
                                                           "await",
                                                           "bitand",
                                                           "bitor",
                                                           "bool",
                                                           "break",
                                                           "case",
                                                           "catch",
                                                           "char",
                                                           "class",
                                                           "compl",
                                                           "const",
                                                           "consteval",
                                                           "constexpr",
                                                           "continue",
                                                           "def",
                                                           "default",
                                                           "del",
                                                           "delete",
                                                           "do",
                                                           "double",
                                                           "elif",
                                                           "else",
                                                           "enum",
                                                           "except",
                                                           "explicit",
                                                           "export",
                                                           "extern",
                                                           "false",
                                                           "False",
                                                           "finally",
                                                           "float",
                                                           "for",
                                                           "friend",
                                                           "from",
                                                           "global",
                                                           "goto",
                                                           "if",
                                                           "import",
                                                           "in",
                                                           "inline",
                                                           "int",
                                                           "is",
                                                           "lambda",
                                                           "long",
                                                           "mutable",
                                                           "namespace",
                                                           "new",
                                                           "noexcept",
                                                           "None",
                                                           "nonlocal",
                                                           "not",
                                                           "operator",
                                                           "or",
                                                           "pass",
                                                           "private",
                                                           "problem",
                                                           "protected",
                                                           "public",
                                                           "raise",
                                                           "real",
                                                           "index_t",
                                                           "added",
                                                           "multiplied",
                                                           "larger",
                                                           "smaller",
                                                           "square",
                                                           "cube",
                                                           "scan",
                                                           "over_lanes",
                                                           "floor_divide",
                                                           "floor_modulo",
                                                           "to_real",
                                                           "from_real",
                                                           "smaller_place",
                                                           "larger_place",
                                                           "pow",
                                                           "later_larger",
                                                           "later_smaller",
                                                           "larger_of",
                                                           "smaller_of",
                                                           "as_f16",
                                                           "as_bf16",
                                                           "as_f8e4m3",
                                                           "as_f8e5m2",
                                                           "Best",
                                                           "Scanned",
                                                           "fabs",
                                                           "half",
                                                           "half2",
                                                           "uint",
                                                           "ushort",
                                                           "ulong",
                                                           "uchar",
                                                           "dim3",
                                                           "clock",
                                                           "warpSize",
                                                           "gemm",
                                                           "multiply_tiles",
                                                           "first_item",
                                                           "end_item",
                                                           "matrix",
                                                           "row_of",
                                                           "column_of",
                                                           "register",
                                                           "requires",
                                                           "return",
                                                           "short",
                                                           "signed",
                                                           "sizeof",
                                                           "static",
                                                           "struct",
                                                           "switch",
                                                           "template",
                                                           "this",
                                                           "thread_local",
                                                           "throw",
                                                           "torch",
                                                           "true",
                                                           "True",
                                                           "try",
                                                           "typedef",
                                                           "typeid",
                                                           "typename",
                                                           "union",
                                                           "unsigned",
                                                           "using",
                                                           "virtual",
                                                           "void",
                                                           "volatile",
                                                           "while",
                                                           "with",
                                                           "xor",
                                                           "yield",
                                                           "F",
                                                           "lane",
                                                           "truth"};
  return names;
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (text.empty() || text.size() > 64 || !letter(text[0]) || text.ends_with('_')) return false;
  if (text.starts_with("__")) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

std::int64_t TensorInfo::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) product *= extent;
  return product;
}

const std::map<std::string, int, std::less<>>& functions() {
  static const std::map<std::string, int, std::less<>> table = {
      {"exp", 1},     {"expm1", 1}, {"log", 1}, {"log1p", 1}, {"sqrt", 1},   {"sin", 1},
      {"cos", 1},     {"tanh", 1},  {"erf", 1}, {"abs", 1},   {"floor", 1},  {"minimum", 2},
      {"maximum", 2}, {"where", 3}, {"f16", 1}, {"bf16", 1},  {"f8e4m3", 1}, {"f8e5m2", 1}};
  return table;
}

Result<Ok> Definition::check_name(const std::string& name) const {
  if (!is_name(name))
    return Error{"'" + name +
                 "' can be no name: expected letters, digits and '_', at most 64, with neither '_' "
                 "at the end nor two at the start"};
  const auto taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const auto& one) { return one.first == name; });
  };
  if (reserved().contains(name) || functions().contains(name) || keywords().contains(name)) {
    return Error{"'" + name +
                 "' is a word of the language, of C++ or of Python: expected another name"};
  }
  if (taken(axes_) || taken(constants_) || find(name)) {
    return Error{"'" + name + "' has a meaning already: expected another name"};
  }
  return Ok{};
}

Result<Ok> Definition::add_axis(const std::string& name, std::int64_t size) {
  if (auto fine = check_name(name); !fine) return fine;
  axes_.emplace_back(name, size);
  return Ok{};
}

Result<Ok> Definition::add_constant(const std::string& name, double value) {
  if (auto fine = check_name(name); !fine) return fine;
  constants_.emplace_back(name, value);
  return Ok{};
}

Result<Ok> Definition::add_tensor(TensorInfo tensor) {
  if (auto fine = check_name(tensor.name); !fine) return fine;
  tensors_.push_back(std::move(tensor));
  return Ok{};
}

const TensorInfo* Definition::find(std::string_view name) const {
  for (const TensorInfo& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

Result<Ok> Definition::add_statement(std::string_view text) {
  Result<Statement> parsed = parse_statement(text);
  if (!parsed) return parsed.error();
  return add_statement(std::move(*parsed));
}

Result<Ok> Definition::add_statement(Statement statement) {
  if (statements_.size() >= max_statements) {
    return Error{"column 1: expected at most " + std::to_string(max_statements) + " statements"};
  }
  Analysis analysis(*this);
  Result<CheckedStatement> checked = analysis.check(std::move(statement));
  if (!checked) return checked.error();
  const std::string& name = checked->statement.name;
  TensorInfo defined = analysis.defined();
  const auto existing = std::find_if(tensors_.begin(), tensors_.end(),
                                     [&](const TensorInfo& one) { return one.name == name; });
  if (existing != tensors_.end()) {
    *existing = std::move(defined);
  } else {
    if (auto fine = check_name(name); !fine) {
      return Error{"column " + std::to_string(checked->statement.column) + ": " +
                   fine.error().message};
    }
    tensors_.push_back(std::move(defined));
  }
  statements_.push_back(std::move(*checked));
  return Ok{};
}

Result<Ok> Definition::finish(bool inputs_too) const {
  std::set<std::string> read;
  for (const CheckedStatement& one : statements_) {
    const auto note = [&](const Expression& e) {
      if (e.op == Operator::read && e.name != one.statement.name) read.insert(e.name);
    };
    for_each(one.statement.right, note);
  }
  for (const TensorInfo& tensor : tensors_) {
    if (!tensor.is_defined)
      return Error{"output '" + tensor.name + "' has no statement: expected one"};
    if (tensor.role == TensorInfo::Role::input && !inputs_too) continue;
    if (tensor.role == TensorInfo::Role::output || read.contains(tensor.name)) continue;
    return Error{"'" + tensor.name + "' is used by no statement: expected a use, or no '" +
                 tensor.name + "'"};
  }
  return Ok{};
}

Result<Expression> Definition::constant_expression(std::string_view text, Type type) const {
  Result<Expression> parsed = parse_expression(text);
  if (!parsed) return parsed;
  Analysis analysis(*this);
  if (auto fine = analysis.check_constant(*parsed, type); !fine) return fine.error();
  return parsed;
}

Result<std::int64_t> Definition::integer(std::string_view text) const {
  const Result<Expression> parsed = constant_expression(text, Type::integer);
  if (!parsed) return parsed.error();
  return parsed->interval.low;
}

std::string Definition::cpp(std::string_view text) const {
  return cpp_text(*constant_expression(text, Type::integer));
}

Result<bool> Definition::condition(std::string_view text) const {
  const Result<Expression> parsed = constant_expression(text, Type::boolean);
  if (!parsed) return parsed.error();
  return constant_value(*parsed, *this) != 0;
}

Result<double> Definition::real(std::string_view text) const {
  const Result<Expression> parsed = constant_expression(text, Type::real);
  if (!parsed) return parsed.error();
  const double value = constant_value(*parsed, *this);
  if (!std::isfinite(value)) return Error{"column 1: expected a finite number"};
  return value;
}

std::optional<Bound> bound_of(const Expression& condition, std::string_view name) {
  const auto mirrored = [](Operator op) {
    switch (op) {
      case Operator::less:
        return Operator::greater;
      case Operator::less_equal:
        return Operator::greater_equal;
      case Operator::greater:
        return Operator::less;
      default:
        return Operator::less_equal;
    }
  };
  const bool compares = condition.op == Operator::less || condition.op == Operator::less_equal ||
                        condition.op == Operator::greater ||
                        condition.op == Operator::greater_equal;
  if (!compares) return std::nullopt;
  const auto alone = [&](const Expression& e) { return e.op == Operator::name && e.name == name; };
  const Expression& left = condition.operands[0];
  const Expression& right = condition.operands[1];
  if (alone(left) && right.type == Type::integer && !mentions(right, name)) {
    return Bound{condition.op, &right};
  }
  if (alone(right) && left.type == Type::integer && !mentions(left, name)) {
    return Bound{mirrored(condition.op), &left};
  }
  return std::nullopt;
}

}  // namespace rekernel::definition

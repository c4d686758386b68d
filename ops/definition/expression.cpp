#include "ops/definition/expression.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace rekernel::definition {

namespace {

/// How tightly an operator binds; those of the grammar's later lines bind tighter.
int precedence(Operator op) {
  switch (op) {
    case Operator::logical_or:
      return 1;
    case Operator::logical_and:
      return 2;
    case Operator::logical_not:
      return 3;
    case Operator::equal:
    case Operator::not_equal:
    case Operator::less:
    case Operator::less_equal:
    case Operator::greater:
    case Operator::greater_equal:
      return 4;
    case Operator::add:
    case Operator::subtract:
      return 5;
    case Operator::multiply:
    case Operator::divide:
    case Operator::floor_divide:
    case Operator::modulo:
      return 6;
    case Operator::negate:
      return 7;
    case Operator::power:
      return 8;
    default:
      return 9;
  }
}

std::string parenthesised(const Expression& expression, bool needed) {
  const std::string text = text_of(expression);
  return needed ? "(" + text + ")" : text;
}

/// A reduction takes the rest of its term, so that it stands in parentheses where more follows.
std::string left_operand(const Expression& operand, Operator op) {
  bool open = false;
  for_each(operand, [&](const Expression& e) { open |= e.op == Operator::reduction; });
  return parenthesised(operand, precedence(operand.op) < precedence(op) ||
                                    (open && precedence(op) >= precedence(Operator::multiply)));
}

std::string number_text(double value) {
  constexpr double all_integers_below = 9007199254740992.0;  // 2^53
  if (std::isinf(value)) return value < 0 ? "-infinity" : "infinity";
  // An exponent would make a real number of an integer.
  if (std::trunc(value) == value && std::abs(value) < all_integers_below) {
    return std::to_string(static_cast<long long>(value));
  }
  std::array<char, 32> buffer;
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

std::string joined(const std::vector<Expression>& parts, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + text_of(parts[i]);
  return text;
}

std::string joined(const std::vector<Index>& indices) {
  std::string text;
  for (const Index& index : indices) {
    text += (text.empty() ? "" : ", ") + index.name;
    if (!index.end.empty()) text += " < " + text_of(index.end.front());
  }
  return text;
}

}  // namespace

bool operator==(const Expression& a, const Expression& b) { return text_of(a) == text_of(b); }

std::vector<const Expression*> conjuncts(const Expression& condition) {
  if (condition.op != Operator::logical_and) return {&condition};
  std::vector<const Expression*> parts = conjuncts(condition.operands[0]);
  for (const Expression* part : conjuncts(condition.operands[1])) parts.push_back(part);
  return parts;
}

bool mentions(const Expression& expression, std::string_view name) {
  bool found = false;
  for_each(expression, [&](const Expression& e) {
    found |= e.name == name && (e.op == Operator::name || e.op == Operator::read);
  });
  return found;
}

std::string_view symbol(Operator op) {
  switch (op) {
    case Operator::negate:
      return "-";
    case Operator::logical_not:
      return "not ";
    case Operator::add:
      return " + ";
    case Operator::subtract:
      return " - ";
    case Operator::multiply:
      return " * ";
    case Operator::divide:
      return " / ";
    case Operator::floor_divide:
      return " // ";
    case Operator::modulo:
      return " % ";
    case Operator::power:
      return "^";
    case Operator::equal:
      return " == ";
    case Operator::not_equal:
      return " != ";
    case Operator::less:
      return " < ";
    case Operator::less_equal:
      return " <= ";
    case Operator::greater:
      return " > ";
    case Operator::greater_equal:
      return " >= ";
    case Operator::logical_and:
      return " and ";
    case Operator::logical_or:
      return " or ";
    default:
      return "";
  }
}

std::string text_of(const Expression& e) {
  switch (e.op) {
    case Operator::number:
      return number_text(e.value) +
             (e.type == Type::real && e.value == std::floor(e.value) && std::fabs(e.value) < 1e15
                  ? ".0"
                  : "");
    case Operator::name:
      return e.name;
    case Operator::read: {
      const std::size_t subscripts = e.operands.size() - (e.has_otherwise ? 1 : 0);
      return e.name + "[" + joined(e.operands, subscripts) +
             (e.has_otherwise ? " else " + text_of(e.operands.back()) : "") + "]";
    }
    case Operator::call:
      return e.name + "(" + joined(e.operands, e.operands.size()) + ")";
    case Operator::reduction:
      return e.name + "(" + joined(e.indices) +
             (e.operands.size() > 1 ? " : " + text_of(e.operands[1]) : "") + ") " +
             parenthesised(e.operands[0],
                           precedence(e.operands[0].op) < precedence(Operator::multiply));
    case Operator::negate:
    case Operator::logical_not:
      return std::string(symbol(e.op)) +
             parenthesised(e.operands[0], precedence(e.operands[0].op) < precedence(e.op));
    case Operator::power:
      return left_operand(e.operands[0], e.op) + "^" +
             parenthesised(e.operands[1],
                           precedence(e.operands[1].op) < precedence(Operator::negate));
    default:
      // A second operand of the same strength is a group: a - (b - c).
      return left_operand(e.operands[0], e.op) + std::string(symbol(e.op)) +
             parenthesised(e.operands[1], precedence(e.operands[1].op) <= precedence(e.op));
  }
}

std::string text_of(const Statement& statement) {
  const std::string indices = joined(statement.indices);
  return statement.name + (indices.empty() ? "" : "[" + indices + "]") + " = " +
         text_of(statement.right);
}

}  // namespace rekernel::definition

#include "ops/definition/scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "ops/dtype.h"

namespace rekernel::definition {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double power(double base, double exponent) {
  if (exponent == 2.0) return base * base;
  if (exponent == 3.0) return base * base * base;
  return std::pow(base, exponent);
}

}  // namespace

double value_of(Operator op, double left, double right) {
  switch (op) {
    case Operator::add:
      return left + right;
    case Operator::subtract:
      return left - right;
    case Operator::multiply:
      return left * right;
    case Operator::divide:
      return left / right;
    case Operator::floor_divide:
      return std::floor(left / right);
    case Operator::modulo:
      return left - right * std::floor(left / right);
    case Operator::power:
      return power(left, right);
    case Operator::equal:
      return left == right;
    case Operator::not_equal:
      return left != right;
    case Operator::less:
      return left < right;
    case Operator::less_equal:
      return left <= right;
    case Operator::greater:
      return left > right;
    case Operator::greater_equal:
      return left >= right;
    case Operator::logical_and:
      return left != 0 && right != 0;
    case Operator::logical_or:
      return left != 0 || right != 0;
    default:
      throw std::logic_error("value_of: not an operator of two operands");
  }
}

double value_of(std::string_view function, std::span<const double> operands) {
  const double x = operands[0];
  if (function == "exp") return std::exp(x);
  if (function == "expm1") return std::expm1(x);
  if (function == "log") return std::log(x);
  if (function == "log1p") return std::log1p(x);
  if (function == "sqrt") return std::sqrt(x);
  if (function == "sin") return std::sin(x);
  if (function == "cos") return std::cos(x);
  if (function == "tanh") return std::tanh(x);
  if (function == "erf") return std::erf(x);
  if (function == "abs") return std::fabs(x);
  if (function == "floor") return std::floor(x);
  // A NaN stays one, as on the device.
  if (function == "minimum") return std::isnan(x) || x < operands[1] ? x : operands[1];
  if (function == "maximum") return std::isnan(x) || x > operands[1] ? x : operands[1];
  if (function == "where") return x != 0 ? operands[1] : operands[2];
  return rounded_to(*dtype_named(function), x);
}

double first_value(std::string_view reducer) {
  if (reducer == "sum") return 0.0;
  if (reducer == "product") return 1.0;
  return reducer == "max" || reducer == "argmax" ? -infinity : infinity;
}

double combined(std::string_view reducer, double so_far, double value) {
  if (reducer == "sum") return so_far + value;
  if (reducer == "product") return so_far * value;
  const std::vector<double> both = {so_far, value};
  return value_of(reducer == "max" ? "maximum" : "minimum", both);
}

double constant_value(const Expression& e, const Definition& scope) {
  switch (e.op) {
    case Operator::number:
      return e.value;
    case Operator::name: {
      if (e.name == "infinity") return infinity;
      for (const auto& [name, size] : scope.axes()) {
        if (name == e.name) return static_cast<double>(size);
      }
      for (const auto& [name, value] : scope.constants()) {
        if (name == e.name) return value;
      }
      throw std::logic_error("constant_value: '" + e.name + "' is no constant");
    }
    case Operator::negate:
      return -constant_value(e.operands[0], scope);
    case Operator::logical_not:
      return constant_value(e.operands[0], scope) == 0;
    case Operator::call: {
      std::vector<double> operands;
      for (const Expression& operand : e.operands)
        operands.push_back(constant_value(operand, scope));
      return value_of(e.name, operands);
    }
    case Operator::read:
    case Operator::reduction:
      throw std::logic_error("constant_value: no constant");
    default:
      return value_of(e.op, constant_value(e.operands[0], scope),
                      constant_value(e.operands[1], scope));
  }
}

}  // namespace rekernel::definition

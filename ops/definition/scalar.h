#pragma once

#include <span>
#include <string_view>

#include "ops/definition/definition.h"

namespace rekernel::definition {

/// The functions and operators of numbers, as the host computes them. Integers and conditions are
/// whole doubles.
double value_of(Operator op, double left, double right);
double value_of(std::string_view function, std::span<const double> operands);

/// What a reducer begins with, and how it takes a further value (not argmax and argmin).
double first_value(std::string_view reducer);
double combined(std::string_view reducer, double so_far, double value);

/// The value of an expression of numbers, axes and constants.
double constant_value(const Expression& expression, const Definition& scope);

}  // namespace rekernel::definition

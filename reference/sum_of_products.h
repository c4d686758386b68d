#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rekernel {

/// Factors, as text, and the powers that they have.
using Factors = std::map<std::string, int>;
/// What is added: products and what each is multiplied by. The product of nothing is a constant.
using SumOfProducts = std::map<Factors, double>;

SumOfProducts constant(double value);
SumOfProducts factor(std::string text, int power = 1);
SumOfProducts scaled(SumOfProducts sum, double by);
SumOfProducts added(SumOfProducts sum, const SumOfProducts& other, double by = 1);
/// Sums of several products become factors in parentheses.
SumOfProducts multiplied(const SumOfProducts& a, const SumOfProducts& b);
SumOfProducts raised(const SumOfProducts& sum, int power);

/// Equal sums have equal texts. Coefficients are told apart by twelve digits.
std::string text_of(const SumOfProducts& sum);
/// The value of a sum that is a constant.
std::optional<double> constant_of(const SumOfProducts& sum);
/// Which integer every index, which is a factor "<name>", is multiplied by in a sum of indices; the
/// constant is that of the empty name. None where the sum has anything else.
std::optional<std::map<std::string, std::int64_t>> linear_of(const SumOfProducts& sum);

}  // namespace rekernel

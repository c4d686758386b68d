#include "reference/sum_of_products.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

namespace rekernel {

namespace {

std::string number_text(double value) {
  // Constants that were computed in another order differ by less.
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.12g", value);
  return text.data();
}

/// One product; a sum of several becomes a factor in parentheses.
SumOfProducts as_product(const SumOfProducts& sum) {
  return sum.size() <= 1 ? sum : factor("(" + text_of(sum) + ")");
}

}  // namespace

SumOfProducts constant(double value) {
  if (value == 0) return {};
  return {{Factors{}, value}};
}
SumOfProducts factor(std::string text, int power) {
  return {{Factors{{std::move(text), power}}, 1.0}};
}

SumOfProducts scaled(SumOfProducts sum, double by) {
  if (by == 0) return {};
  for (auto& [factors, coefficient] : sum) coefficient *= by;
  return sum;
}

SumOfProducts added(SumOfProducts sum, const SumOfProducts& other, double by) {
  for (const auto& [factors, coefficient] : other) {
    double& own = sum[factors];
    own += by * coefficient;
    if (own == 0) sum.erase(factors);
  }
  return sum;
}

SumOfProducts multiplied(const SumOfProducts& a, const SumOfProducts& b) {
  if (const auto value = constant_of(a)) return scaled(b, *value);
  if (const auto value = constant_of(b)) return scaled(a, *value);
  const SumOfProducts left = as_product(a), right = as_product(b);
  Factors factors = left.begin()->first;
  for (const auto& [text, power] : right.begin()->first) {
    if ((factors[text] += power) == 0) factors.erase(text);
  }
  return {{factors, left.begin()->second * right.begin()->second}};
}

SumOfProducts raised(const SumOfProducts& sum, int power) {
  if (const auto value = constant_of(sum)) return constant(std::pow(*value, power));
  const SumOfProducts product = as_product(sum);
  Factors factors = product.begin()->first;
  for (auto& [text, own] : factors) own *= power;
  return {{factors, std::pow(product.begin()->second, power)}};
}

std::string text_of(const SumOfProducts& sum) {
  std::string text;
  for (const auto& [factors, coefficient] : sum) {
    text += (text.empty() ? "" : "+") + number_text(coefficient);
    for (const auto& [one, power] : factors) {
      text += "*" + one + (power == 1 ? "" : "^" + std::to_string(power));
    }
  }
  return text.empty() ? "0" : text;
}

std::optional<double> constant_of(const SumOfProducts& sum) {
  if (sum.empty()) return 0.0;
  if (sum.size() > 1 || !sum.begin()->first.empty()) return std::nullopt;
  return sum.begin()->second;
}

std::optional<std::map<std::string, std::int64_t>> linear_of(const SumOfProducts& sum) {
  std::map<std::string, std::int64_t> result = {{"", 0}};
  for (const auto& [factors, coefficient] : sum) {
    if (coefficient != std::floor(coefficient) || std::fabs(coefficient) > 1e15) {
      return std::nullopt;
    }
    if (factors.size() > 1) return std::nullopt;
    std::string name;
    if (!factors.empty()) {
      name = factors.begin()->first;
      if (factors.begin()->second != 1 || name.front() != '<') return std::nullopt;
      name = name.substr(1, name.size() - 2);
    }
    result[name] = static_cast<std::int64_t>(coefficient);
  }
  return result;
}

}  // namespace rekernel

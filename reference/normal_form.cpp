#include "reference/normal_form.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "ops/definition/scalar.h"

namespace rekernel {

namespace {

using definition::CheckedStatement;
using definition::Definition;
using definition::Expression;
using definition::Index;
using definition::Operator;
using definition::TensorInfo;

/// Expressions visited: definitions that use what they define twice, over and over, grow so.
constexpr int most_visits = 20'000;
constexpr int most_levels = 200;
constexpr int largest_power = 16;

/// Makes the form of one expression after the other; `failed` says that there is none.
class Former {
 public:
  explicit Former(const Definition& scope) : scope_(scope) {}

  using Places = std::map<std::string, SumOfProducts, std::less<>>;

  SumOfProducts of(const Expression& e, const Places& places) {
    if (++visits_ > most_visits || level_ > most_levels) failed_ = true;
    if (failed_) return {};
    ++level_;
    SumOfProducts result = visit(e, places);
    --level_;
    return result;
  }

  /// What a statement defines, at these places.
  SumOfProducts of_statement(const std::string& name, const std::vector<SumOfProducts>& places) {
    const CheckedStatement* found = nullptr;
    for (const CheckedStatement& checked : scope_.statements()) {
      if (checked.statement.name == name) found = &checked;
    }
    if (!found || found->recurrence || !open_.insert(name).second) {
      failed_ = true;
      return {};
    }
    Places inner;
    for (std::size_t i = 0; i < places.size(); ++i) {
      inner[found->statement.indices.at(i).name] = places[i];
    }
    SumOfProducts result = of(found->statement.right, inner);
    open_.erase(name);
    return result;
  }

  bool failed() const { return failed_; }

 private:
  SumOfProducts visit(const Expression& e, const Places& places) {
    const auto operand = [&](std::size_t i) { return of(e.operands[i], places); };
    switch (e.op) {
      case Operator::number:
        return constant(e.value);
      case Operator::name:
        return name(e, places);
      case Operator::read:
        return read(e, places);
      case Operator::call:
        return call(e, places);
      case Operator::reduction:
        return reduction(e, places);
      case Operator::negate:
        return scaled(operand(0), -1);
      case Operator::add:
        return added(operand(0), operand(1));
      case Operator::subtract:
        return added(operand(0), operand(1), -1);
      case Operator::multiply:
        return multiplied(operand(0), operand(1));
      case Operator::divide:
        return multiplied(operand(0), raised(operand(1), -1));
      case Operator::power:
        return power(operand(0), operand(1));
      case Operator::floor_divide:
      case Operator::modulo:
        return whole_division(e, operand(0), operand(1));
      default:
        return condition_as_number(e, places);
    }
  }

  SumOfProducts name(const Expression& e, const Places& places) {
    if (const auto place = places.find(e.name); place != places.end()) return place->second;
    if (scope_.find(e.name)) return read(e, places);
    return constant(definition::constant_value(e, scope_));
  }

  SumOfProducts read(const Expression& e, const Places& places) {
    const TensorInfo& tensor = *scope_.find(e.name);
    std::vector<SumOfProducts> subscripts;
    for (std::size_t i = 0; i < tensor.extents.size(); ++i) {
      subscripts.push_back(of(e.operands[i], places));
    }
    if (tensor.role != TensorInfo::Role::input) {
      failed_ |= e.may_be_outside;
      return of_statement(e.name, subscripts);
    }
    std::string text = e.name + "[";
    for (const SumOfProducts& subscript : subscripts) text += text_of(subscript) + ",";
    if (e.has_otherwise && e.may_be_outside) {
      text += "else " + text_of(of(e.operands.back(), places));
    }
    return factor(text + "]");
  }

  SumOfProducts call(const Expression& e, const Places& places) {
    if (e.name == "where") {
      const std::set<std::string> parts = conjunction(e.operands[0], places);
      const bool holds = std::all_of(parts.begin(), parts.end(),
                                     [&](const std::string& part) { return known(part); });
      if (holds) return of(e.operands[1], places);
      std::string text = "where(";
      for (const std::string& part : parts) text += part + "&";
      return factor(text + "," + text_of(of(e.operands[1], places)) + "," +
                    text_of(of(e.operands[2], places)) + ")");
    }
    std::vector<std::string> texts;
    std::vector<double> values;
    for (const Expression& operand : e.operands) {
      const SumOfProducts form = of(operand, places);
      texts.push_back(text_of(form));
      if (const auto value = constant_of(form)) values.push_back(*value);
    }
    if (values.size() == texts.size()) return constant(definition::value_of(e.name, values));
    if (e.name == "minimum" || e.name == "maximum") std::sort(texts.begin(), texts.end());
    std::string text = e.name + "(";
    for (const std::string& one : texts) text += one + ",";
    return factor(text + ")");
  }

  SumOfProducts power(const SumOfProducts& base, const SumOfProducts& exponent) {
    const auto value = constant_of(exponent);
    const auto of_base = constant_of(base);
    if (value && of_base) return constant(std::pow(*of_base, *value));
    if (value && *value == std::floor(*value) && std::fabs(*value) <= largest_power) {
      return raised(base, static_cast<int>(*value));
    }
    return factor("power(" + text_of(base) + "," + text_of(exponent) + ")");
  }

  SumOfProducts whole_division(const Expression& e, const SumOfProducts& a,
                               const SumOfProducts& b) {
    const bool divides = e.op == Operator::floor_divide;
    if (e.interval.low == e.interval.high) return constant(static_cast<double>(e.interval.low));
    const auto divisor = constant_of(b);
    const definition::Interval range = e.operands[0].interval;
    if (divides && divisor == 1.0) return a;
    if (!divides && divisor && range.low >= 0 && static_cast<double>(range.high) < *divisor) {
      return a;
    }
    return factor(std::string(divides ? "quotient(" : "rest(") + text_of(a) + "," + text_of(b) +
                  ")");
  }

  /// The parts of a condition that are not certainly true, sorted.
  std::set<std::string> conjunction(const Expression& e, const Places& places) {
    std::set<std::string> parts;
    for (const Expression* part : definition::conjuncts(e)) {
      const std::string text = comparison(*part, places);
      if (text != "true") parts.insert(text);
    }
    return parts;
  }

  std::string comparison(const Expression& e, const Places& places) {
    if (e.interval.low == 1 && e.interval.high == 1) return "true";
    if (e.operands.size() != 2) return text_of(of_other(e, places));
    SumOfProducts a = of(e.operands[0], places), b = of(e.operands[1], places);
    Operator op = e.op;
    if (op == Operator::greater || op == Operator::greater_equal) {
      std::swap(a, b);
      op = op == Operator::greater ? Operator::less : Operator::less_equal;
    }
    const auto left = constant_of(a), right = constant_of(b);
    if (left && right && definition::value_of(op, *left, *right) != 0) return "true";
    std::string first = text_of(a), second = text_of(b);
    if ((op == Operator::equal || op == Operator::not_equal) && second < first) {
      std::swap(first, second);
    }
    return first + std::string(definition::symbol(op)) + second;
  }

  SumOfProducts of_other(const Expression& e, const Places& places) {
    if (e.op == Operator::logical_not) {
      return factor("not(" + text_of(of(e.operands[0], places)) + ")");
    }
    return of(e, places);
  }

  SumOfProducts condition_as_number(const Expression& e, const Places& places) {
    if (e.op == Operator::logical_not) return of_other(e, places);
    std::string text;
    for (const std::string& part : conjunction(e, places)) text += part + "&";
    return text.empty() ? constant(1) : factor("[" + text + "]");
  }

  bool known(const std::string& condition) const {
    return std::find(conditions_.begin(), conditions_.end(), condition) != conditions_.end();
  }

  SumOfProducts reduction(const Expression& e, const Places& outer) {
    Places places = outer;
    std::vector<std::string> names;
    std::string text = e.name + "(";
    for (const Index* index : in_order_of_use(e)) {
      names.push_back("<r" + std::to_string(reductions_++) + ">");
      places[index->name] = factor(names.back());
      text += names.back() + "<" + std::to_string(index->extent) + ",";
    }
    const std::size_t before = conditions_.size();
    if (e.operands.size() > 1) {
      for (const std::string& part : conjunction(e.operands[1], places)) {
        conditions_.push_back(part);
        text += ":" + part;
      }
    }
    const SumOfProducts body = of(e.operands[0], places);
    conditions_.resize(before);
    reductions_ -= static_cast<int>(names.size());
    if (e.name != "sum" || body.size() != 1) return factor(text + ")" + text_of(body));
    // What does not change from term to term stands outside of the sum.
    Factors inside, outside;
    for (const auto& [one, exponent] : body.begin()->first) {
      const bool changes = std::any_of(names.begin(), names.end(), [&, &own = one](const auto& n) {
        return own.find(n) != std::string::npos;
      });
      (changes ? inside : outside)[one] = exponent;
    }
    outside[text + ")" + text_of({{inside, 1.0}})] += 1;
    return {{outside, body.begin()->second}};
  }

  /// Its indices as the body names them first.
  static std::vector<const Index*> in_order_of_use(const Expression& e) {
    std::vector<const Index*> order;
    const auto add = [&](const Index& index) {
      if (std::find(order.begin(), order.end(), &index) == order.end()) order.push_back(&index);
    };
    definition::for_each(e.operands[0], [&](const Expression& part) {
      for (const Index& index : e.indices) {
        if (part.op == Operator::name && part.name == index.name) add(index);
      }
    });
    for (const Index& index : e.indices) add(index);
    return order;
  }

  const Definition& scope_;
  int visits_ = 0, level_ = 0, reductions_ = 0;
  bool failed_ = false;
  std::set<std::string> open_;  ///< statements that are being put in
  std::vector<std::string> conditions_;
};

}  // namespace

std::optional<SumOfProducts> normal_form(const Definition& definition, const std::string& output) {
  Former former(definition);
  std::vector<SumOfProducts> places;
  const TensorInfo* tensor = definition.find(output);
  if (!tensor) return std::nullopt;
  for (std::size_t i = 0; i < tensor->extents.size(); ++i) {
    places.push_back(factor("<" + std::to_string(i) + ">"));
  }
  SumOfProducts form = former.of_statement(output, places);
  if (former.failed()) return std::nullopt;
  return form;
}

std::optional<SumOfProducts> normal_form(const Definition& definition,
                                         const definition::Statement& statement,
                                         const Expression& expression) {
  Former::Places places;
  const auto add = [&](const Index& index) { places[index.name] = factor("<" + index.name + ">"); };
  for (const Index& index : statement.indices) add(index);
  definition::for_each(statement.right, [&](const Expression& e) {
    for (const Index& index : e.indices) add(index);
  });
  Former former(definition);
  SumOfProducts form = former.of(expression, places);
  if (former.failed()) return std::nullopt;
  return form;
}

}  // namespace rekernel

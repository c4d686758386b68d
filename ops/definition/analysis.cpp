#include "ops/definition/analysis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ops/definition/scalar.h"

namespace rekernel::definition {

namespace {

/// Integers are computed as doubles in places; up to here those are exact.
constexpr __int128 largest_integer = __int128{1} << 53;

/// The largest tensor that a statement may define: as float64, half a terabyte.
constexpr std::int64_t most_elements = std::int64_t{1} << 36;

struct Range {
  __int128 low, high;
};

Range of_corners(const Interval& a, const Interval& b, __int128 (*combine)(__int128, __int128)) {
  const std::array corners = {combine(a.low, b.low), combine(a.low, b.high), combine(a.high, b.low),
                              combine(a.high, b.high)};
  return {*std::min_element(corners.begin(), corners.end()),
          *std::max_element(corners.begin(), corners.end())};
}

__int128 floor_divided(__int128 a, __int128 b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

bool is_alone(const Expression& e, std::string_view name) {
  return e.op == Operator::name && e.name == name;
}

std::string plural(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string plural_indices(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " index" : " indices");
}

}  // namespace

std::string cpp_text(const Expression& expression) {
  std::string text = text_of(expression);
  for (std::size_t at = 0; (at = text.find("//", at)) != std::string::npos;) text.erase(at, 1);
  const bool is_leaf = expression.op == Operator::number || expression.op == Operator::name;
  return is_leaf ? text : "(" + text + ")";
}

void Analysis::fail(int column, const std::string& problem) {
  if (!error_) error_ = Error{"column " + std::to_string(column) + ": " + problem};
}

Result<CheckedStatement> Analysis::check(Statement statement) {
  statement_ = &statement;
  find_left_extents(statement);
  check_elements(statement);
  if (error_) return *error_;
  defined_.name = statement.name;
  for (const Index& index : statement.indices) {
    defined_.extents.push_back(index.extent);
    defined_.extent_texts.push_back(index.extent_text);
    enter(index);
  }
  visit(statement.right);
  if (error_) return *error_;
  defined_.type = statement.right.type;
  defined_.interval = statement.right.interval;
  defined_.is_defined = true;
  if (const TensorInfo* output = scope_.find(statement.name)) {
    defined_.role = output->role;
    defined_.dtype = output->dtype;
    const std::optional<IntegerRange> range = integer_range(*output->dtype);
    if (range && defined_.type == Type::real) {
      fail(1, std::string("'") + statement.name + "' has type " + to_string(*output->dtype) +
                  ": expected integers on the right, got reals");
    } else if (range &&
               (defined_.interval.low < range->low || defined_.interval.high > range->high)) {
      fail(1, std::string("'") + statement.name + "' has type " + to_string(*output->dtype) +
                  ", whose values run from " + std::to_string(range->low) + " to " +
                  std::to_string(range->high) + ": the right side runs from " +
                  std::to_string(defined_.interval.low) + " to " +
                  std::to_string(defined_.interval.high));
    }
  }
  if (error_) return *error_;
  CheckedStatement checked{std::move(statement), recurrence_, std::nullopt};
  find_scan(checked);
  return checked;
}

Result<Ok> Analysis::check_constant(Expression& expression, Type type) {
  const Statement none;
  statement_ = &none;
  for_each(expression, [&](const Expression& e) {
    if (e.op == Operator::read || e.op == Operator::reduction) {
      fail(e.column, "expected axes, constants and numbers alone");
    }
  });
  if (!error_) visit(expression);
  if (!error_ && type == Type::integer) want_integer(expression, "an integer");
  if (!error_ && type == Type::boolean) want_condition(expression, "a condition");
  if (error_) return *error_;
  return Ok{};
}

void Analysis::find_left_extents(Statement& statement) {
  const TensorInfo* known = scope_.find(statement.name);
  const bool is_output = known && known->role == TensorInfo::Role::output;
  if (known && (!is_output || known->is_defined)) {
    fail(statement.column, "'" + statement.name + "' has a meaning already: expected a new name");
    return;
  }
  if (is_output && known->extents.size() != statement.indices.size()) {
    fail(statement.column, "output '" + statement.name + "' has " +
                               plural(known->extents.size(), "dimension") + ", got " +
                               plural_indices(statement.indices.size()));
    return;
  }
  const std::vector<const Expression*> uses = {&statement.right};
  for (std::size_t i = 0; i < statement.indices.size() && !error_; ++i) {
    Index& index = statement.indices[i];
    find_extent(index, uses, is_output);
    if (error_ || !is_output) continue;
    if (index.end.empty()) {
      index.extent = known->extents[i];
      index.extent_text = known->extent_texts[i];
    }
    if (index.extent != known->extents[i]) {
      fail(index.column, "index '" + index.name + "' ends at " + std::to_string(index.extent) +
                             ", the output's axis at " + std::to_string(known->extents[i]));
    }
  }
}

void Analysis::check_elements(const Statement& statement) {
  std::int64_t elements = 1;
  for (const Index& index : statement.indices) {
    if (!error_ &&
        (__builtin_mul_overflow(elements, index.extent, &elements) || elements > most_elements)) {
      fail(statement.column, "'" + statement.name + "' has more than " +
                                 std::to_string(most_elements) + " elements: expected fewer");
    }
  }
}

/// Where the index stands alone in a read, and what it may not be.
void Analysis::find_extent(Index& index, const std::vector<const Expression*>& uses,
                           bool of_output) {
  if (auto fine = scope_.check_name(index.name); !fine) {
    fail(index.column, fine.error().message);
    return;
  }
  if (index.name == statement_->name) {
    fail(index.column,
         "index '" + index.name + "' is called as what is defined: expected another name");
    return;
  }
  if (indices_.contains(index.name)) {
    fail(index.column, "index '" + index.name + "' stands twice: expected another name");
    return;
  }
  const auto same = [&](const Index& other) {
    return &other != &index && other.name == index.name;
  };
  if (std::any_of(statement_->indices.begin(), statement_->indices.end(), same)) {
    // A reduction's index is told by enter(); this is the left side's own repetition.
    const auto count = std::count_if(statement_->indices.begin(), statement_->indices.end(),
                                     [&](const Index& one) { return one.name == index.name; });
    if (count > 1) {
      fail(index.column, "index '" + index.name + "' stands twice: expected another name");
      return;
    }
  }
  if (!index.end.empty()) {
    Analysis end(scope_);
    if (auto fine = end.check_constant(index.end.front(), Type::integer); !fine) {
      if (!error_) error_ = fine.error();
      return;
    }
    index.extent = index.end.front().interval.low;
    index.extent_text = cpp_text(index.end.front());
    if (index.extent < 1)
      fail(index.column,
           "index '" + index.name + "' runs over nothing: expected an end of at least 1");
    return;
  }
  index.extent = 0;
  const auto look = [&](const Expression& e) {
    if (e.op != Operator::read) return;
    const TensorInfo* tensor = scope_.find(e.name);
    if (!tensor || !tensor->is_defined) return;
    for (std::size_t i = 0; i < e.operands.size() && i < tensor->extents.size(); ++i) {
      if (!is_alone(e.operands[i], index.name)) continue;
      if (index.extent != 0 && index.extent != tensor->extents[i]) {
        fail(e.operands[i].column,
             "index '" + index.name + "' runs over axes of " + std::to_string(index.extent) +
                 " and " + std::to_string(tensor->extents[i]) +
                 " elements: expected one size, or an end ('" + index.name + " < …')");
        return;
      }
      index.extent = tensor->extents[i];
      index.extent_text = tensor->extent_texts[i];
    }
  };
  if (of_output) return;
  for (const Expression* use : uses) for_each(*use, look);
  if (!error_ && index.extent == 0) {
    fail(index.column, "index '" + index.name + "' stands alone in no read: expected an end ('" +
                           index.name + " < …')");
  }
}

void Analysis::enter(const Index& index) {
  if (!indices_.emplace(index.name, Interval{0, index.extent - 1}).second) {
    fail(index.column, "index '" + index.name + "' stands twice: expected another name");
  }
}

void Analysis::visit(Expression& e) {
  if (error_) return;
  switch (e.op) {
    case Operator::number:
      if (e.type == Type::integer) {
        e.interval = {static_cast<std::int64_t>(e.value), static_cast<std::int64_t>(e.value)};
      }
      return;
    case Operator::name:
      return visit_name(e);
    case Operator::read:
      return visit_read(e);
    case Operator::call:
      return visit_call(e);
    case Operator::reduction:
      return visit_reduction(e);
    default:
      return visit_operator(e);
  }
}

void Analysis::visit_name(Expression& e) {
  e.type = Type::integer;
  if (const auto found = indices_.find(e.name); found != indices_.end()) {
    e.interval = found->second;
    return;
  }
  for (const auto& [name, size] : scope_.axes()) {
    if (name != e.name) continue;
    e.interval = {size, size};
    return;
  }
  e.type = Type::real;
  if (e.name == "infinity") return;
  for (const auto& [name, value] : scope_.constants()) {
    if (name == e.name) return;
  }
  const TensorInfo* tensor = scope_.find(e.name);
  if (!tensor || !tensor->is_defined) {
    fail(e.column,
         "nothing is called '" + e.name +
             "': expected an index, an axis, a constant or a tensor that is defined before");
  } else if (!tensor->extents.empty()) {
    fail(e.column, "'" + e.name + "' has " + plural(tensor->extents.size(), "dimension") +
                       ": expected '[' and as many indices");
  } else {
    e.op = Operator::read;
    e.type = tensor->type;
    e.interval = tensor->interval;
  }
}

void Analysis::visit_read(Expression& e) {
  const std::size_t subscripts = e.operands.size() - (e.has_otherwise ? 1 : 0);
  for (Expression& operand : e.operands) visit(operand);
  if (error_) return;
  if (e.name == statement_->name) {
    visit_own_read(e);
    e.may_be_outside = true;
    // What a recurrence holds is known after it was visited; integers are those of its indices.
    const TensorInfo* own = scope_.find(e.name);
    const std::optional<IntegerRange> range =
        own && own->dtype ? integer_range(*own->dtype) : std::nullopt;
    e.type = range ? Type::integer : Type::real;
    if (statement_->right.op == Operator::reduction &&
        (statement_->right.name == "argmax" || statement_->right.name == "argmin")) {
      e.type = Type::integer;
      const auto& over = statement_->right.indices.front();
      const auto found = indices_.find(over.name);
      e.interval = {0, found == indices_.end() ? std::int64_t{1} << 40 : found->second.high};
    } else if (range) {
      fail(e.column, "a recurrence of integers is an argmax or argmin alone");
    }
    return;
  }
  const TensorInfo* tensor = scope_.find(e.name);
  if (!tensor || !tensor->is_defined) {
    fail(e.column, "no tensor is called '" + e.name + "': expected one that is defined before");
    return;
  }
  if (tensor->extents.size() != subscripts) {
    fail(e.column, "'" + e.name + "' has " + plural(tensor->extents.size(), "dimension") +
                       ", got " + plural_indices(subscripts));
    return;
  }
  for (std::size_t i = 0; i < subscripts && !error_; ++i) {
    const Expression& subscript = e.operands[i];
    want_integer(subscript, "an integer as index");
    if (error_) return;
    const bool outside =
        subscript.interval.low < 0 || subscript.interval.high >= tensor->extents[i];
    e.may_be_outside |= outside;
    if (outside && !e.has_otherwise) {
      fail(subscript.column,
           "'" + e.name + "' is read from " + std::to_string(subscript.interval.low) + " to " +
               std::to_string(subscript.interval.high) + " of dimension " + std::to_string(i + 1) +
               ": expected 0 to " + std::to_string(tensor->extents[i] - 1) +
               ", or 'else' and what is read outside");
    }
  }
  e.type = tensor->type;
  e.interval = tensor->interval;
  if (!e.has_otherwise) return;
  const Expression& otherwise = e.operands.back();
  e.type = std::max(e.type, otherwise.type);
  e.interval = {std::min(e.interval.low, otherwise.interval.low),
                std::max(e.interval.high, otherwise.interval.high)};
}

/// All indices of the left side as they are, but for one, which is smaller.
void Analysis::visit_own_read(const Expression& e) {
  const std::string expected =
      "a read of '" + e.name + "' itself has the indices of the left side, one of them smaller ('" +
      (statement_->indices.empty() ? "t" : statement_->indices.back().name) + " - 1'), and 'else'";
  if (!e.has_otherwise || e.operands.size() != statement_->indices.size() + 1) {
    fail(e.column, expected);
    return;
  }
  std::optional<std::size_t> along;
  for (std::size_t i = 0; i < statement_->indices.size(); ++i) {
    const std::string& name = statement_->indices[i].name;
    const Expression& place = e.operands[i];
    if (is_alone(place, name)) continue;
    const bool smaller = place.op == Operator::subtract && is_alone(place.operands[0], name) &&
                         place.operands[1].op == Operator::number && place.operands[1].value >= 1;
    if (!smaller || along) {
      fail(place.column, expected);
      return;
    }
    along = i;
  }
  if (!along || (recurrence_ && *recurrence_ != *along)) {
    fail(e.column, expected);
    return;
  }
  recurrence_ = along;
}

void Analysis::visit_call(Expression& e) {
  const auto found = functions().find(e.name);
  if (found == functions().end()) {
    std::string known;
    for (const auto& [name, operands] : functions()) known += (known.empty() ? "" : ", ") + name;
    fail(e.column, "no function is called '" + e.name + "': expected one of " + known);
    return;
  }
  if (e.operands.size() != static_cast<std::size_t>(found->second)) {
    fail(e.column, "'" + e.name + "' takes " +
                       plural(static_cast<std::size_t>(found->second), "operand") + ", got " +
                       std::to_string(e.operands.size()));
    return;
  }
  if (e.name == "where") return visit_where(e);
  for (Expression& operand : e.operands) visit(operand);
  if (error_) return;
  e.type = Type::real;
  const auto merge = [&](const Expression& a, const Expression& b) {
    e.type = std::max(a.type, b.type);
    e.interval = {std::min(a.interval.low, b.interval.low),
                  std::max(a.interval.high, b.interval.high)};
  };
  if (e.name == "minimum" || e.name == "maximum") {
    merge(e.operands[0], e.operands[1]);
    if (e.type == Type::boolean) e.type = Type::integer;
    const Interval &a = e.operands[0].interval, &b = e.operands[1].interval;
    if (e.name == "minimum") e.interval = {std::min(a.low, b.low), std::min(a.high, b.high)};
    if (e.name == "maximum") e.interval = {std::max(a.low, b.low), std::max(a.high, b.high)};
  } else if (e.name == "abs" && e.operands[0].type != Type::real) {
    e.type = Type::integer;
    const Interval& a = e.operands[0].interval;
    e.interval = {a.low > 0 ? a.low : 0, std::max(std::abs(a.low), std::abs(a.high))};
  }
}

void Analysis::visit_where(Expression& e) {
  visit(e.operands[0]);
  if (error_) return;
  want_condition(e.operands[0], "a condition as the first operand of 'where'");
  const Ranges before = indices_;
  for (std::size_t i = 1; i < 3 && !error_; ++i) {
    narrow(e.operands[0], i == 1);
    visit(e.operands[i]);
    indices_ = before;
  }
  if (error_) return;
  const Expression &then = e.operands[1], &otherwise = e.operands[2];
  e.type = std::max(then.type, otherwise.type);
  e.interval = {std::min(then.interval.low, otherwise.interval.low),
                std::max(then.interval.high, otherwise.interval.high)};
}

void Analysis::narrow(const Expression& condition, bool holds) {
  if (condition.op == Operator::logical_not) return narrow(condition.operands[0], !holds);
  if (condition.op == (holds ? Operator::logical_and : Operator::logical_or)) {
    for (const Expression& operand : condition.operands) narrow(operand, holds);
    return;
  }
  for (auto& [name, range] : indices_) {
    const std::optional<Bound> bound = bound_of(condition, name);
    if (!bound) continue;
    const Interval limit = bound->bound->interval;
    const bool below = bound->op == Operator::less || bound->op == Operator::less_equal;
    const bool strict = bound->op == Operator::less || bound->op == Operator::greater;
    // What does not hold is the other comparison: not a < b is a >= b.
    const bool is_upper = below == holds;
    const std::int64_t off = strict == holds ? 1 : 0;
    if (is_upper)
      range.high = std::max(range.low, std::min(range.high, limit.high - off));
    else
      range.low = std::min(range.high, std::max(range.low, limit.low + off));
  }
}

void Analysis::visit_reduction(Expression& e) {
  const bool of_index = e.name == "argmax" || e.name == "argmin";
  if (of_index && e.indices.size() != 1) {
    fail(e.indices[1].column, "'" + e.name + "' runs over one index");
    return;
  }
  std::vector<const Expression*> uses;
  for (const Expression& operand : e.operands) uses.push_back(&operand);
  double terms = 1;
  for (Index& index : e.indices) {
    find_extent(index, uses, false);
    if (error_) return;
    enter(index);
    terms *= static_cast<double>(index.extent);
  }
  const Ranges before = indices_;
  if (e.operands.size() > 1) {
    visit(e.operands[1]);
    if (error_) return;
    want_condition(e.operands[1], "a condition after ':'");
    narrow(e.operands[1], true);
  }
  if (!error_) visit(e.operands[0]);
  if (error_) return;
  indices_ = before;
  for (const Index& index : e.indices) leave(index);
  const Expression& body = e.operands[0];
  if (of_index) {
    e.type = Type::integer;
    e.interval = {0, e.indices[0].extent - 1};
    return;
  }
  e.type = body.type == Type::boolean ? Type::integer : body.type;
  if (e.type == Type::real) return;
  if (e.name == "product" || (e.operands.size() > 1 && e.name != "sum")) {
    e.type = Type::real;  // without a bound, or an infinity where there are no terms
    return;
  }
  e.interval = body.interval;
  if (e.name != "sum") return;
  const double low = std::min(0.0, static_cast<double>(body.interval.low) * terms);
  const double high = std::max(0.0, static_cast<double>(body.interval.high) * terms);
  if (low < -static_cast<double>(largest_integer) || high > static_cast<double>(largest_integer)) {
    fail(e.column, "a sum of integers may pass 2^53: expected a real body ('1.0 * …')");
    return;
  }
  e.interval = {static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
}

void Analysis::visit_operator(Expression& e) {
  for (Expression& operand : e.operands) visit(operand);
  if (error_) return;
  switch (e.op) {
    case Operator::logical_not:
    case Operator::logical_and:
    case Operator::logical_or:
      for (const Expression& operand : e.operands) {
        want_condition(operand, "a condition");
      }
      e.type = Type::boolean;
      e.interval = {0, 1};
      return;
    case Operator::equal:
    case Operator::not_equal:
    case Operator::less:
    case Operator::less_equal:
    case Operator::greater:
    case Operator::greater_equal:
      e.type = Type::boolean;
      e.interval = {0, 1};
      return;
    case Operator::divide:
    case Operator::power: {
      e.type = Type::real;
      const Expression& divisor = e.operands[1];
      if (e.op == Operator::divide && divisor.type == Type::integer && divisor.interval.low <= 0 &&
          divisor.interval.high >= 0) {
        fail(divisor.column, "a division by an integer from " +
                                 std::to_string(divisor.interval.low) + " to " +
                                 std::to_string(divisor.interval.high) + ", which may be 0");
      }
      return;
    }
    case Operator::floor_divide:
    case Operator::modulo:
      for (const Expression& operand : e.operands)
        want_integer(operand, "an integer beside '" +
                                  std::string(symbol(e.op).substr(1, symbol(e.op).size() - 2)) +
                                  "'");
      if (!error_ && e.operands[1].interval.low < 1) {
        fail(e.operands[1].column, "expected a divisor of at least 1, got one from " +
                                       std::to_string(e.operands[1].interval.low));
      }
      break;
    default:
      break;
  }
  if (error_) return;
  e.type = Type::integer;
  for (const Expression& operand : e.operands) e.type = std::max(e.type, operand.type);
  if (e.type == Type::integer) set_range(e);
}

void Analysis::set_range(Expression& e) {
  const Interval a = e.operands[0].interval;
  const Interval b = e.operands.size() > 1 ? e.operands[1].interval : Interval{};
  Range range{0, 0};
  switch (e.op) {
    case Operator::negate:
      range = {-__int128{a.high}, -__int128{a.low}};
      break;
    case Operator::add:
      range = {__int128{a.low} + b.low, __int128{a.high} + b.high};
      break;
    case Operator::subtract:
      range = {__int128{a.low} - b.high, __int128{a.high} - b.low};
      break;
    case Operator::multiply:
      range = of_corners(a, b, [](__int128 x, __int128 y) { return x * y; });
      break;
    case Operator::floor_divide:
      range = of_corners(a, b, floor_divided);
      break;
    case Operator::modulo:
      range = {0, b.high - 1};
      if (a.low >= 0 && a.high < b.low) range = {a.low, a.high};
      if (b.low == b.high && floor_divided(a.low, b.low) == floor_divided(a.high, b.low)) {
        const __int128 whole = floor_divided(a.low, b.low) * b.low;
        range = {a.low - whole, a.high - whole};
      }
      break;
    default:
      break;
  }
  if (range.low < -largest_integer || range.high > largest_integer) {
    fail(e.column, "an integer may pass 2^53: expected smaller ones");
    return;
  }
  e.interval = {static_cast<std::int64_t>(range.low), static_cast<std::int64_t>(range.high)};
}

void Analysis::want_integer(const Expression& e, const std::string& what) {
  if (e.type != Type::integer && !error_) {
    fail(e.column,
         "expected " + what + ", got " + (e.type == Type::real ? "a real" : "a condition"));
  }
}

void Analysis::want_condition(const Expression& e, const std::string& what) {
  if (e.type != Type::boolean && !error_) {
    fail(e.column,
         "expected " + what + ", got " + (e.type == Type::real ? "a real" : "an integer"));
  }
}

void Analysis::find_scan(CheckedStatement& checked) const {
  const Statement& statement = checked.statement;
  const Expression& right = statement.right;
  if (right.op != Operator::reduction || right.indices.size() != 1 || right.operands.size() != 2 ||
      right.name == "argmax" || right.name == "argmin" || checked.recurrence) {
    return;
  }
  const std::optional<Bound> bound = bound_of(right.operands[1], right.indices[0].name);
  if (!bound || bound->bound->op != Operator::name) return;
  for (std::size_t i = 0; i < statement.indices.size(); ++i) {
    const Index& index = statement.indices[i];
    if (index.name != bound->bound->name || index.extent != right.indices[0].extent) continue;
    if (!mentions(right.operands[0], index.name)) checked.scan = i;
  }
}

}  // namespace rekernel::definition

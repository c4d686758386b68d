#include "harness/candidate/plan_expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/candidate/plan_token.h"

namespace rekernel {

namespace {

constexpr int max_depth = 60;
constexpr std::array<std::string_view, 3> functions = {"min", "max", "ceil_div"};
constexpr std::array<std::string_view, 3> words = {"and", "or", "not"};

template <class List>
bool is_one_of(std::string_view text, const List& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// What part of an expression is worth.
struct Value {
  std::int64_t number = 1;
  bool is_condition = false;
};

/// Computes while it reads. The first error stands; afterwards every answer is harmless.
class ExpressionReader {
 public:
  /// Where `computes` is false, names and grammar alone are looked at.
  ExpressionReader(std::string_view text, const PlanNames& names, bool computes)
      : names_(names), computes_(computes), tokens_(text) {
    if (text.size() > max_plan_expression) {
      fail(1, "expected at most " + std::to_string(max_plan_expression) + " characters, got " +
                  std::to_string(text.size()));
    }
    advance();
  }

  Result<std::int64_t> read(bool wants_condition) {
    const PlanToken first = token_;
    const Value value = condition();
    if (token_.kind != PlanToken::Kind::end) fail_here("an operator or the end");
    if (value.is_condition != wants_condition) {
      fail(first.column, wants_condition ? "expected a condition such as 'rows % 4 == 0', got an "
                                           "integer"
                                         : "expected an integer, got a condition");
    }
    if (error_) return *error_;
    return value.number;
  }

 private:
  /// Expressions within expressions, as deep as we let them be.
  class Depth {
   public:
    explicit Depth(ExpressionReader& reader) : depth_(reader.depth_) {
      if (++depth_ > max_depth) reader.fail_here("no deeper nesting");
    }
    ~Depth() { --depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    int& depth_;
  };

  Value condition() {
    const Depth depth(*this);
    if (error_) return {};
    return logical("or", true, [this] { return conjunction(); });
  }

  Value conjunction() {
    return logical("and", false, [this] { return negation(); });
  }

  /// Operands that `word` joins; one whose value is `decides` makes the rest matter no longer.
  template <class Operand>
  Value logical(std::string_view word, bool decides, const Operand& operand) {
    int column = token_.column;
    Value left = operand();
    const bool computed = computes_;
    while (token_.kind == PlanToken::Kind::name && token_.text == word) {
      want(left, true, column);
      advance();
      if ((left.number != 0) == decides) computes_ = false;
      column = token_.column;
      const Value right = operand();
      want(right, true, column);
      if (computes_) left.number = right.number;
    }
    computes_ = computed;
    return left;
  }

  Value negation() {
    if (token_.kind != PlanToken::Kind::name || token_.text != "not") return comparison();
    const Depth depth(*this);
    if (error_) return {};
    advance();
    const int column = token_.column;
    const Value value = negation();
    want(value, true, column);
    return {value.number == 0, true};
  }

  Value comparison() {
    const int column = token_.column;
    const Value left = sum();
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!accept(op)) continue;
      const int second = token_.column;
      const Value right = sum();
      want(left, false, column);
      want(right, false, second);
      return {compared(op, left.number, right.number), true};
    }
    return left;
  }

  static bool compared(std::string_view op, std::int64_t a, std::int64_t b) {
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    if (op == "<=") return a <= b;
    if (op == ">=") return a >= b;
    return op == "<" ? a < b : a > b;
  }

  Value sum() {
    return chain({"+", "-"}, [this] { return term(); });
  }

  Value term() {
    return chain({"*", "//", "/", "%"}, [this] { return factor(); });
  }

  template <class Operand>
  Value chain(std::initializer_list<std::string_view> operators, const Operand& operand) {
    int column = token_.column;
    Value left = operand();
    while (token_.kind == PlanToken::Kind::symbol && is_one_of(token_.text, operators)) {
      const PlanToken op = token_;
      advance();
      want(left, false, column);
      column = token_.column;
      const Value right = operand();
      want(right, false, column);
      left = {computed(op, left.number, right.number), false};
    }
    return left;
  }

  Value factor() {
    const PlanToken op = token_;
    if (!accept("-")) return atom();
    const Depth depth(*this);
    if (error_) return {};
    const int column = token_.column;
    const Value value = factor();
    want(value, false, column);
    return {computed(op, 0, value.number), false};
  }

  Value atom() {
    if (token_.kind == PlanToken::Kind::number) return number();
    if (token_.kind == PlanToken::Kind::name && !is_one_of(token_.text, words)) return named();
    if (!accept("(")) {
      fail_here("an integer, a name or '('");
      return {};
    }
    const Value inner = condition();
    expect(")");
    return inner;
  }

  Value number() {
    Value value;
    const char* const end = token_.text.data() + token_.text.size();
    const auto [stop, failure] = std::from_chars(token_.text.data(), end, value.number);
    if (failure != std::errc() || stop != end) fail_here("an integer below 2^63");
    advance();
    return value;
  }

  Value named() {
    const PlanToken name = token_;
    advance();
    if (token_.kind == PlanToken::Kind::symbol && token_.text == "(") return call(name);
    const auto found = names_.find(name.text);
    if (found != names_.end()) return {found->second, false};
    std::vector<std::string> known;
    for (const auto& [one, value] : names_) known.push_back(one);
    fail(name.column, "unknown name '" + std::string(name.text) + "': expected one of " +
                          (known.empty() ? "no names" : joined(known)));
    return {};
  }

  Value call(const PlanToken& function) {
    if (!is_one_of(function.text, functions)) {
      fail(function.column,
           "unknown function '" + std::string(function.text) + "': expected min, max or ceil_div");
      return {};
    }
    advance();
    const Value a = argument();
    expect(",");
    const Value b = argument();
    expect(")");
    return {computed(function, a.number, b.number), false};
  }

  Value argument() {
    const int column = token_.column;
    const Value value = condition();
    want(value, false, column);
    return value;
  }

  std::int64_t computed(const PlanToken& op, std::int64_t a, std::int64_t b) {
    if (!computes_ || error_) return 1;
    const Result<std::int64_t> value = plan_value_of(op.text, a, b);
    if (value) return *value;
    fail(op.column, value.error().message);
    return 1;
  }

  void want(const Value& value, bool condition, int column) {
    if (value.is_condition == condition) return;
    fail(column, condition ? "expected a condition, got an integer"
                           : "expected an integer, got a condition");
  }

  void advance() { token_ = error_ ? PlanToken{PlanToken::Kind::end, {}, 1} : tokens_.next(); }

  bool accept(std::string_view symbol) {
    if (token_.kind != PlanToken::Kind::symbol || token_.text != symbol) return false;
    advance();
    return true;
  }

  void expect(std::string_view symbol) {
    if (!accept(symbol)) fail_here("'" + std::string(symbol) + "'");
  }

  void fail_here(const std::string& expected) {
    fail(token_.column,
         "expected " + expected + ", got " +
             (token_.kind == PlanToken::Kind::end ? "the end"
                                                  : "'" + one_line(token_.text, 40) + "'"));
  }

  void fail(int column, const std::string& problem) {
    if (!error_) error_ = Error{"column " + std::to_string(column) + ": " + problem};
  }

  const PlanNames& names_;
  bool computes_;
  int depth_ = 0;
  PlanTokens tokens_;
  PlanToken token_;
  std::optional<Error> error_;
};

}  // namespace

Result<std::int64_t> integer_of(std::string_view expression, const PlanNames& names) {
  return ExpressionReader(expression, names, true).read(false);
}

Result<bool> condition_of(std::string_view expression, const PlanNames& names) {
  const Result<std::int64_t> value = ExpressionReader(expression, names, true).read(true);
  if (!value) return value.error();
  return *value != 0;
}

Result<Ok> check_integer(std::string_view expression, const PlanNames& names) {
  const Result<std::int64_t> value = ExpressionReader(expression, names, false).read(false);
  if (!value) return value.error();
  return Ok{};
}

Result<Ok> check_condition(std::string_view expression, const PlanNames& names) {
  const Result<std::int64_t> value = ExpressionReader(expression, names, false).read(true);
  if (!value) return value.error();
  return Ok{};
}

}  // namespace rekernel

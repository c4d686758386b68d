#include "ops/definition/parser.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace rekernel::definition {

namespace {

constexpr int max_depth = 60;
constexpr std::size_t max_name_length = 64;
constexpr std::array<std::string_view, 6> reducers = {"sum", "product", "max",
                                                      "min", "argmax",  "argmin"};
/// Longer ones before those that they begin with.
constexpr std::array<std::string_view, 22> symbols = {"//", "==", "!=", "<=", ">=", "<", ">", "=",
                                                      "+",  "-",  "*",  "/",  "%",  "^", "(", ")",
                                                      "[",  "]",  ",",  ":",  "..", "."};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Token {
  enum class Kind { name, number, symbol, end };
  Kind kind = Kind::end;
  std::string_view text;
  int column = 1;
};

/// Reads a text from left to right. The first error stands; afterwards every answer is harmless.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text.size() > max_statement_length) {
      fail(1, "expected at most " + std::to_string(max_statement_length) + " characters, got " +
                  std::to_string(text.size()));
    }
    advance();
  }

  Statement statement() {
    Statement statement;
    statement.text = text_;
    statement.column = token_.column;
    statement.name = name("the name of what is defined");
    if (accept("[")) {
      statement.indices = indices("]");
      expect("]");
    }
    expect("=");
    statement.right = expression();
    expect_end();
    return statement;
  }

  Expression expression() {
    Expression left = conjunction();
    while (accept_word("or")) left = binary(Operator::logical_or, std::move(left), conjunction());
    return left;
  }

  void expect_end() {
    if (token_.kind != Token::Kind::end) fail_here("an operator or the end");
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  Expression conjunction() {
    Expression left = negation();
    while (accept_word("and")) left = binary(Operator::logical_and, std::move(left), negation());
    return left;
  }

  Expression negation() {
    const int column = token_.column;
    if (!accept_word("not")) return comparison();
    const Depth depth(*this);
    if (error_) return {};
    return unary(Operator::logical_not, column, negation());
  }

  Expression comparison() {
    Expression left = addition();
    constexpr std::array<std::pair<std::string_view, Operator>, 6> operators = {{
        {"==", Operator::equal},
        {"!=", Operator::not_equal},
        {"<=", Operator::less_equal},
        {">=", Operator::greater_equal},
        {"<", Operator::less},
        {">", Operator::greater},
    }};
    for (const auto& [text, op] : operators) {
      if (accept(text)) return binary(op, std::move(left), addition());
    }
    return left;
  }

  Expression addition() {
    Expression left = term();
    for (;;) {
      if (accept("+")) {
        left = binary(Operator::add, std::move(left), term());
      } else if (accept("-")) {
        left = binary(Operator::subtract, std::move(left), term());
      } else {
        return left;
      }
    }
  }

  Expression term() {
    Expression left = factor();
    constexpr std::array<std::pair<std::string_view, Operator>, 4> operators = {{
        {"*", Operator::multiply},
        {"//", Operator::floor_divide},
        {"/", Operator::divide},
        {"%", Operator::modulo},
    }};
    for (bool more = true; more;) {
      more = false;
      for (const auto& [text, op] : operators) {
        if (!accept(text)) continue;
        left = binary(op, std::move(left), factor());
        more = true;
        break;
      }
    }
    return left;
  }

  Expression factor() {
    const int column = token_.column;
    if (!accept("-")) return power();
    const Depth depth(*this);
    if (error_) return {};
    return unary(Operator::negate, column, factor());
  }

  Expression power() {
    Expression base = atom();
    if (!accept("^")) return base;
    const Depth depth(*this);
    if (error_) return {};
    return binary(Operator::power, std::move(base), factor());
  }

  Expression atom() {
    const Depth depth(*this);
    if (error_) return {};
    if (token_.kind == Token::Kind::number) return number();
    if (token_.kind == Token::Kind::name) return named();
    if (!accept("(")) {
      fail_here("a number, a name or '('");
      return {};
    }
    Expression inner = expression();
    expect(")");
    return inner;
  }

  Expression number() {
    Expression result;
    result.column = token_.column;
    const std::string_view text = token_.text;
    const auto [end, failure] =
        std::from_chars(text.data(), text.data() + text.size(), result.value);
    if (failure != std::errc() || end != text.data() + text.size()) {
      fail_here("a number");
      return {};
    }
    const bool whole = text.find_first_of(".eE") == std::string_view::npos;
    if (whole && result.value > 9e15) fail_here("an integer of at most 9e15");
    result.type = whole ? Type::integer : Type::real;
    advance();
    return result;
  }

  Expression named() {
    Expression result;
    result.column = token_.column;
    result.name = name("a name");
    if (accept("[")) {
      result.op = Operator::read;
      do result.operands.push_back(expression());
      while (!error_ && accept(","));
      if (accept_word("else")) {
        result.has_otherwise = true;
        result.operands.push_back(expression());
      }
      expect("]");
      return result;
    }
    if (token_.text == "(" && is_reducer(result.name)) return reduction(std::move(result));
    if (accept("(")) {
      result.op = Operator::call;
      do result.operands.push_back(expression());
      while (!error_ && accept(","));
      expect(")");
      return result;
    }
    result.op = Operator::name;
    return result;
  }

  Expression reduction(Expression result) {
    result.op = Operator::reduction;
    expect("(");
    result.indices = indices(")");
    std::optional<Expression> condition;
    if (accept(":")) condition = expression();
    expect(")");
    result.operands.push_back(term());
    if (condition) result.operands.push_back(std::move(*condition));
    return result;
  }

  /// One or more names with or without an end, up to `closing` or a colon.
  std::vector<Index> indices(std::string_view closing) {
    std::vector<Index> result;
    do {
      Index index;
      index.column = token_.column;
      index.name = name("the name of an index");
      if (accept("<")) index.end.push_back(addition());
      result.push_back(std::move(index));
    } while (!error_ && accept(","));
    if (token_.text != closing && token_.text != ":") {
      fail_here("',' or '" + std::string(closing) + "'");
    }
    return result;
  }

  static bool is_reducer(std::string_view name) {
    for (const std::string_view reducer : reducers) {
      if (name == reducer) return true;
    }
    return false;
  }

  Expression unary(Operator op, int column, Expression operand) {
    Expression result;
    result.op = op;
    result.column = column;
    result.operands.push_back(std::move(operand));
    return result;
  }

  Expression binary(Operator op, Expression left, Expression right) {
    if (++operators_ > max_statement_length) fail_here("fewer operators");
    Expression result;
    result.op = op;
    result.column = left.column;
    result.operands.reserve(2);
    result.operands.push_back(std::move(left));
    result.operands.push_back(std::move(right));
    return result;
  }

  std::string name(const std::string& what) {
    if (token_.kind != Token::Kind::name || is_word(token_.text)) {
      fail_here(what);
      return {};
    }
    if (token_.text.size() > max_name_length) {
      fail_here("a name of at most " + std::to_string(max_name_length) + " characters");
    }
    std::string result(token_.text);
    advance();
    return result;
  }

  static bool is_word(std::string_view text) {
    return text == "and" || text == "or" || text == "not" || text == "else";
  }

  bool accept(std::string_view symbol) {
    if (error_ || token_.kind != Token::Kind::symbol || token_.text != symbol) return false;
    advance();
    return true;
  }

  bool accept_word(std::string_view word) {
    if (error_ || token_.kind != Token::Kind::name || token_.text != word) return false;
    advance();
    return true;
  }

  void expect(std::string_view symbol) {
    if (!error_ && !accept(symbol)) fail_here("'" + std::string(symbol) + "'");
  }

  void fail_here(const std::string& expected) {
    const std::string got =
        token_.kind == Token::Kind::end ? "the end" : "'" + std::string(token_.text) + "'";
    fail(token_.column, "expected " + expected + ", got " + got);
  }

  void fail(int column, const std::string& problem) {
    if (!error_) error_ = Error{"column " + std::to_string(column) + ": " + problem};
    token_ = {Token::Kind::end, {}, column};
    at_ = text_.size();
  }

  void advance() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
    const int column = static_cast<int>(at_) + 1;
    const std::string_view rest = text_.substr(at_);
    if (rest.empty()) {
      token_ = {Token::Kind::end, {}, column};
      return;
    }
    std::size_t length = 0;
    Token::Kind kind = Token::Kind::symbol;
    if (is_letter(rest[0])) {
      kind = Token::Kind::name;
      while (length < rest.size() && (is_letter(rest[length]) || is_digit(rest[length]))) ++length;
    } else if (is_digit(rest[0])) {
      kind = Token::Kind::number;
      length = number_length(rest);
    } else {
      for (const std::string_view symbol : symbols) {
        if (!rest.starts_with(symbol)) continue;
        length = symbol.size();
        break;
      }
    }
    if (length == 0) {
      fail(column, "expected a name, a number or an operator, got a character of none");
      return;
    }
    token_ = {kind, rest.substr(0, length), column};
    at_ += length;
  }

  static std::size_t number_length(std::string_view text) {
    std::size_t length = 0;
    const auto digits = [&] {
      while (length < text.size() && is_digit(text[length])) ++length;
    };
    digits();
    if (length + 1 < text.size() && text[length] == '.' && is_digit(text[length + 1])) {
      ++length;
      digits();
    }
    if (length < text.size() && (text[length] == 'e' || text[length] == 'E')) {
      std::size_t digit = length + 1;
      if (digit < text.size() && (text[digit] == '-' || text[digit] == '+')) ++digit;
      if (digit < text.size() && is_digit(text[digit])) {
        length = digit;
        digits();
      }
    }
    return length;
  }

  /// Guards the stack against hostile nesting.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > max_depth) parser_.fail_here("a shallower expression");
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  std::string_view text_;
  std::size_t at_ = 0;
  Token token_;
  int depth_ = 0;
  std::size_t operators_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Statement> parse_statement(std::string_view text) {
  Parser parser(text);
  Statement statement = parser.statement();
  if (parser.error()) return *parser.error();
  return statement;
}

Result<Expression> parse_expression(std::string_view text) {
  Parser parser(text);
  Expression expression = parser.expression();
  parser.expect_end();
  if (parser.error()) return *parser.error();
  return expression;
}

}  // namespace rekernel::definition

#include "harness/candidate/plan_token.h"

#include <algorithm>
#include <array>
#include <limits>

namespace rekernel {

namespace {

/// Longer ones before those that they begin with.
constexpr std::array<std::string_view, 15> symbols = {"//", "==", "!=", "<=", ">=", "<", ">", "+",
                                                      "-",  "*",  "/",  "%",  "(",  ")", ","};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

Error too_large() { return Error{"its value does not fit in 64 bits"}; }

Result<std::int64_t> divided(std::string_view op, std::int64_t a, std::int64_t b) {
  if (b == 0) return Error{"a division by 0"};
  // The one quotient that overflows; its remainder is none.
  if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) {
    if (op == "%") return std::int64_t{0};
    return too_large();
  }
  const bool is_whole = a % b == 0;
  const std::int64_t down = a / b - (!is_whole && (a < 0) != (b < 0) ? 1 : 0);
  if (op == "ceil_div") return down + (is_whole ? 0 : 1);
  return op == "%" ? a - down * b : down;
}

}  // namespace

PlanToken PlanTokens::next() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  PlanToken token{PlanToken::Kind::end, text_.substr(at_, 0), static_cast<int>(at_) + 1};
  if (at_ >= text_.size()) return token;
  std::size_t length = 1;
  const auto take = [&](PlanToken::Kind kind, const auto& belongs) {
    token.kind = kind;
    while (at_ + length < text_.size() && belongs(text_[at_ + length])) ++length;
  };
  if (is_letter(text_[at_])) {
    take(PlanToken::Kind::name, [](char c) { return is_letter(c) || is_digit(c); });
  } else if (is_digit(text_[at_])) {
    take(PlanToken::Kind::number, [](char c) { return is_letter(c) || is_digit(c) || c == '.'; });
  } else {
    const auto found = std::find_if(
        symbols.begin(), symbols.end(),
        [&](const std::string_view symbol) { return text_.substr(at_).starts_with(symbol); });
    token.kind = found == symbols.end() ? PlanToken::Kind::unknown : PlanToken::Kind::symbol;
    if (found != symbols.end()) length = found->size();
  }
  token.text = text_.substr(at_, length);
  at_ += length;
  return token;
}

Result<std::int64_t> plan_value_of(std::string_view op, std::int64_t a, std::int64_t b) {
  if (op == "min") return std::min(a, b);
  if (op == "max") return std::max(a, b);
  std::int64_t value = 0;
  bool overflows = false;
  if (op == "+") {
    overflows = __builtin_add_overflow(a, b, &value);
  } else if (op == "-") {
    overflows = __builtin_sub_overflow(a, b, &value);
  } else if (op == "*") {
    overflows = __builtin_mul_overflow(a, b, &value);
  } else {
    return divided(op, a, b);
  }
  if (overflows) return too_large();
  return value;
}

}  // namespace rekernel

#include "harness/terminal/values.h"

#include <algorithm>
#include <charconv>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/terminal/suggestion.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

constexpr std::size_t longest_shown = 64;

/// The parser puts the option's name in place of %canonical_option%.
class BadValue : public po::error_with_option_name {
 public:
  explicit BadValue(const std::string& text)
      : po::error_with_option_name("%canonical_option%" + text) {}
};

bool is_within(const std::string& text, const ValueRule::Range& range) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() && number >= range.least &&
         number <= range.most;
}

/// "a, b or c".
std::string alternatives(std::vector<std::string> words) {
  if (words.size() < 2) return joined(words);
  const std::string last = words.back();
  words.pop_back();
  return joined(words) + " or " + last;
}

}  // namespace

std::string ValueRule::expected() const {
  if (range) {
    return std::to_string(range->least) + " to " + std::to_string(range->most) +
           (range->unit.empty() ? "" : " " + range->unit);
  }
  return alternatives(words);
}

void ValueRule::check(const std::vector<std::string>& given) const {
  for (const std::string& one : given) {
    if (range && !is_within(one, *range)) throw BadValue(": expected " + expected());
    if (words.empty() || std::find(words.begin(), words.end(), one) != words.end()) continue;
    throw BadValue(" " + one_line(one, longest_shown) + did_you_mean(one, words) + ": expected " +
                   expected());
  }
}

const ValueRule* rule_of(const po::value_semantic& value) {
  return dynamic_cast<const ValueRule*>(&value);
}

po::typed_value<std::string>* one_of(std::vector<std::string> words) {
  const std::string shown = joined(words, "|");
  constexpr std::size_t longest = 32;
  auto* const value = new RuledValue<std::string>({.words = std::move(words)});
  return value->value_name(columns_of(shown) > longest ? "WORD" : shown);
}

po::typed_value<std::string>* text_value(const char* shown, std::vector<Names> names) {
  return (new RuledValue<std::string>({.names = std::move(names)}))->value_name(shown);
}

po::typed_value<std::vector<std::string>>* list_value(const char* shown, std::vector<Names> names) {
  auto* const value = new RuledValue<std::vector<std::string>>({.names = std::move(names)});
  return value->value_name(shown)->composing();
}

}  // namespace rekernel

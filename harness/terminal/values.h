#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace rekernel {

/// What a value on the command line names, for those that complete it.
enum class Names { anything, file, folder, problem, kernel, search, command };

/// What a value may be.
struct ValueRule {
  std::vector<std::string> words = {};  ///< one of these; empty: any
  struct Range {
    std::int64_t least = 0, most = 0;
    std::string unit = {};  ///< "seconds"
  };
  std::optional<Range> range = {};
  std::vector<Names> names = {};

  /// "10 to 10000 seconds", "auto, on or off"; empty where anything goes.
  std::string expected() const;
  /// Throws a boost::program_options::error, which says what was expected and what may have been
  /// meant.
  void check(const std::vector<std::string>& given) const;
};

/// A value that keeps a rule. Help, completion and the parser read the one rule.
template <class T>
class RuledValue final : public boost::program_options::typed_value<T>, public ValueRule {
 public:
  explicit RuledValue(ValueRule rule)
      : boost::program_options::typed_value<T>(nullptr), ValueRule(std::move(rule)) {}

  void xparse(boost::any& stored, const std::vector<std::string>& given) const override {
    check(given);
    boost::program_options::typed_value<T>::xparse(stored, given);
  }
};

/// The rule of an option's value; none where it has no rule.
const ValueRule* rule_of(const boost::program_options::value_semantic& value);

/// One of some words: shown as auto|on|off.
boost::program_options::typed_value<std::string>* one_of(std::vector<std::string> words);

/// A text that is shown under this name, and completed with what it names.
boost::program_options::typed_value<std::string>* text_value(const char* shown,
                                                             std::vector<Names> names = {});
/// The same for an option that may be repeated, or for positionals.
boost::program_options::typed_value<std::vector<std::string>>* list_value(
    const char* shown, std::vector<Names> names = {});

/// A whole number within a range.
template <class T = int>
boost::program_options::typed_value<T>* whole_number(std::int64_t least, std::int64_t most,
                                                     std::string unit = {}) {
  ValueRule rule;
  rule.range = ValueRule::Range{least, most, std::move(unit)};
  return (new RuledValue<T>(std::move(rule)))->value_name("N");
}

}  // namespace rekernel

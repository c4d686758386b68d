#include "harness/terminal/page.h"

#include <boost/make_shared.hpp>

#include "harness/base/text.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

bool takes_several(const Positional& positional) {
  return positional.count == Count::any || positional.count == Count::some;
}

}  // namespace

std::string Positional::usage() const {
  const std::string dots = takes_several(*this) ? "…" : "";
  const bool needed = count == Count::one || count == Count::some;
  return needed ? shown + dots : "[" + shown + dots + "]";
}

ShownOption shown_option(const po::option_description& option) {
  const po::value_semantic& value = *option.semantic();
  ShownOption shown{
      option.long_name(), {}, option.description(), value.is_composing(), rule_of(value)};
  if (value.max_tokens() == 0) return shown;
  // The parser's own words: "N (=60)".
  const std::string words = value.name();
  const std::size_t fallback = words.find(" (=");
  shown.value = words.substr(0, fallback);
  if (shown.value == po::arg) shown.value = "VALUE";
  std::vector<std::string> facts;
  if (shown.rule && (shown.rule->range || shown.value == "WORD")) {
    facts.push_back(shown.rule->expected());
  }
  if (fallback != std::string::npos) {
    const std::size_t begin = fallback + 3;
    facts.push_back("default " + words.substr(begin, words.size() - begin - 1));
  }
  if (!facts.empty()) shown.text += " (" + joined(facts, "; ") + ")";
  return shown;
}

void Page::takes(const Positional& positional, const po::value_semantic* value) {
  takes(positional, boost::make_shared<po::option_description>(positional.key.c_str(), value,
                                                               positional.text.c_str()));
}

void Page::takes(Positional positional, boost::shared_ptr<po::option_description> option) {
  positionals_.push_back(std::move(positional));
  positional_options_.push_back(std::move(option));
}

po::options_description& Page::group(const std::string& title) {
  for (OptionGroup& group : groups_) {
    if (group.title == title) return group.options;
  }
  groups_.push_back({title, po::options_description(title)});
  return groups_.back().options;
}

const ValueRule* Page::rule_of_positional(const std::string& key) const {
  for (const auto& option : positional_options_) {
    if (option->long_name() == key) return rule_of(*option->semantic());
  }
  return nullptr;
}

std::string Page::usage_text() const {
  if (!usage.empty()) return usage;
  std::string text;
  for (const Positional& one : positionals_) text += one.usage() + " ";
  return text + "[options]";
}

po::options_description Page::all_options() const {
  po::options_description all;
  for (const auto& option : positional_options_) all.add(option);
  for (const OptionGroup& group : groups_) all.add(group.options);
  return all;
}

po::positional_options_description Page::positions() const {
  po::positional_options_description positions;
  for (const Positional& one : positionals_) {
    positions.add(one.key.c_str(), takes_several(one) ? -1 : 1);
  }
  return positions;
}

}  // namespace rekernel

#include "harness/terminal/completion.h"

#include <algorithm>
#include <set>

namespace rekernel {

namespace po = boost::program_options;

namespace {

const char* const help_option = "--help";

void add(Completions& found, const std::string& begun, const Item& item) {
  if (item.term.starts_with(begun)) found.words.push_back(item);
}

/// The words of a value; `before` goes before each ("--pytorch=").
void add_values(Completions& found, const ValueRule* rule, const std::string& begun,
                const std::string& before, const CompletionSource& source) {
  if (!rule) return;
  std::vector<std::string> words = rule->words;
  for (const Names names : rule->names) {
    found.files |= names == Names::file;
    found.folders |= names == Names::folder;
    if (names == Names::file || names == Names::folder) continue;
    for (std::string& one : source.names(names)) words.push_back(std::move(one));
  }
  for (const std::string& word : words) {
    if (word.starts_with(begun)) found.words.push_back({before + word, ""});
  }
}

/// What the words after a command's name say up to the last one, which is to be completed.
class Position {
 public:
  Position(const Page& page, std::vector<std::string> words) : page_(page) {
    if (!words.empty()) {
      begun_ = words.back();
      words.pop_back();
    }
    for (const std::string& word : words) read(word);
  }

  Completions completions(const CompletionSource& source) const {
    Completions found;
    if (value_of_) {
      const std::string begun = begun_ == "=" ? "" : begun_;
      add_values(found, value_of_->rule, begun, "", source);
    } else if (!only_positionals_ && begun_.starts_with("-")) {
      complete_option(found, source);
    } else if (const Positional* positional = next_positional()) {
      add_values(found, page_.rule_of_positional(positional->key), begun_, "", source);
    }
    return found;
  }

 private:
  void read(const std::string& word) {
    if (value_of_) {
      if (word != "=") value_of_.reset();
    } else if (only_positionals_ || !word.starts_with("-")) {
      ++positionals_;
    } else if (word == "--") {
      only_positionals_ = true;
    } else {
      const std::size_t equals = word.find('=');
      value_of_ = option(word.substr(0, equals));
      if (value_of_) given_.insert(value_of_->name);
      if (value_of_ && (value_of_->value.empty() || equals != std::string::npos)) {
        value_of_.reset();
      }
    }
  }

  std::optional<ShownOption> option(const std::string& word) const {
    for (const OptionGroup& group : page_.groups()) {
      for (const auto& one : group.options.options()) {
        if ("--" + one->long_name() == word) return shown_option(*one);
      }
    }
    return std::nullopt;
  }

  void complete_option(Completions& found, const CompletionSource& source) const {
    if (const std::size_t equals = begun_.find('='); equals != std::string::npos) {
      if (const auto known = option(begun_.substr(0, equals))) {
        add_values(found, known->rule, begun_.substr(equals + 1), begun_.substr(0, equals + 1),
                   source);
      }
      return;
    }
    for (const OptionGroup& group : page_.groups()) {
      for (const auto& one : group.options.options()) {
        const ShownOption shown = shown_option(*one);
        if (shown.repeats || !given_.contains(shown.name)) {
          add(found, begun_, {"--" + shown.name, shown.text});
        }
      }
    }
  }

  const Positional* next_positional() const {
    const std::vector<Positional>& all = page_.positionals();
    if (positionals_ < all.size()) return &all[positionals_];
    const bool goes_on =
        !all.empty() && (all.back().count == Count::any || all.back().count == Count::some);
    return goes_on ? &all.back() : nullptr;
  }

  const Page& page_;
  std::string begun_;
  std::optional<ShownOption> value_of_;
  std::set<std::string> given_;
  std::size_t positionals_ = 0;
  bool only_positionals_ = false;
};

std::string first_words(const std::vector<std::string>& words, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i > 0 ? " " : "") + words[i];
  return text;
}

/// The next word of the commands that begin with these words.
void add_commands(Completions& found, const std::vector<std::string>& words,
                  const CompletionSource& source) {
  const std::string before = words.size() > 1 ? first_words(words, words.size() - 1) + " " : "";
  for (const Item& command : source.commands) {
    if (!command.term.starts_with(before)) continue;
    const std::string rest = command.term.substr(before.size());
    const std::size_t end = rest.find(' ');
    Item item = {rest.substr(0, end), end == std::string::npos ? command.text : ""};
    const bool twice = std::any_of(found.words.begin(), found.words.end(),
                                   [&](const Item& one) { return one.term == item.term; });
    if (!twice) add(found, words.back(), item);
  }
}

}  // namespace

Completions complete(const std::vector<std::string>& words, const CompletionSource& source) {
  Completions found;
  if (words.empty()) return found;
  constexpr std::size_t longest_command = 2;
  for (std::size_t count = std::min(longest_command, words.size() - 1); count > 0; --count) {
    const std::string name = first_words(words, count);
    const bool known = std::any_of(source.commands.begin(), source.commands.end(),
                                   [&](const Item& one) { return one.term == name; });
    if (!known) continue;
    const std::optional<Page> page = source.page(name);
    if (!page) return found;
    const auto rest = words.begin() + static_cast<std::ptrdiff_t>(count);
    return Position(*page, {rest, words.end()}).completions(source);
  }
  add_commands(found, words, source);
  if (words.size() == 1) {
    add(found, words.back(), {help_option, "the commands"});
    add(found, words.back(), {"--version", "versions of program, judge and compilers"});
  }
  return found;
}

std::string to_lines(const Completions& completions) {
  std::string lines;
  for (const Item& one : completions.words) {
    lines += one.term + (one.text.empty() ? "" : "\t" + one.text) + "\n";
  }
  if (completions.files) lines += ":files\n";
  if (completions.folders && !completions.files) lines += ":folders\n";
  return lines;
}

}  // namespace rekernel

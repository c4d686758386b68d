#pragma once

#include <boost/program_options.hpp>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "harness/terminal/values.h"

namespace rekernel {

/// A command line to start from. `line` is one that runs in this project.
struct Example {
  std::string line;
  std::string what = {};
};

/// How many words a positional argument takes.
enum class Count { one, optional, any, some };

/// An argument without a name on the command line.
struct Positional {
  std::string key;    ///< by which the command asks for it
  std::string shown;  ///< "KERNEL"
  std::string text;
  Count count = Count::one;

  /// "KERNEL…", "[KERNEL]".
  std::string usage() const;
};

/// Options that belong together, in the order in which they are shown.
struct OptionGroup {
  std::string title;
  boost::program_options::options_description options;
};

/// What an option of the parser says to a reader.
struct ShownOption {
  std::string name;      ///< "samples"
  std::string value;     ///< "N"; empty where it takes none
  std::string text;      ///< with range and default
  bool repeats = false;  ///< may be given several times
  const ValueRule* rule = nullptr;
};
ShownOption shown_option(const boost::program_options::option_description& option);

/// What a command takes and says of itself. Parser, help, manual page and completion are made of
/// this and of nothing else.
class Page {
 public:
  std::string usage = {};  ///< what follows the command's name; made of the positionals if empty
  std::string description = {};
  std::vector<Example> examples = {};
  std::map<int, std::string> statuses = {
      {0, "good"}, {2, "bad usage or input: a line on standard error says what was expected"}};

  /// A positional argument after those before it. Only the last may take several words.
  void takes(const Positional& positional, const boost::program_options::value_semantic* value);
  void takes(Positional positional,
             boost::shared_ptr<boost::program_options::option_description> option);
  /// The group of this title, made at its first use: add_options() of it takes more.
  boost::program_options::options_description& group(const std::string& title);

  const std::vector<Positional>& positionals() const { return positionals_; }
  const std::deque<OptionGroup>& groups() const { return groups_; }
  /// The rule of a positional's value; none where it has no rule.
  const ValueRule* rule_of_positional(const std::string& key) const;

  /// "[PROBLEM|KERNEL…] [options]".
  std::string usage_text() const;
  /// Everything, as the parser takes it.
  boost::program_options::options_description all_options() const;
  boost::program_options::positional_options_description positions() const;

 private:
  std::vector<Positional> positionals_;
  std::vector<boost::shared_ptr<boost::program_options::option_description>> positional_options_;
  std::deque<OptionGroup> groups_;
};

}  // namespace rekernel

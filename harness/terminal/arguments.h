#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rekernel {

/// The outcome of parsing: values, or the exit status to return at once (help was printed, or the
/// arguments were bad and the error was printed).
struct ParsedArguments {
  boost::program_options::variables_map values;
  std::optional<int> exit_status;

  bool has(const char* name) const { return values.count(name) > 0; }
  /// Whether it was said, and is no default.
  bool given(const char* name) const { return has(name) && !values[name].defaulted(); }
  template <class T>
  const T& get(const char* name) const {
    return values[name].as<T>();
  }
  bool flag(const char* name) const { return values[name].as<bool>(); }
};

/// Parses a subcommand's arguments; adds --help, which prints `usage` ("rekernel list [options]"),
/// the options and `example`.
ParsedArguments parse_arguments(
    const std::vector<std::string>& arguments, const std::string& usage, const std::string& example,
    const boost::program_options::options_description& options,
    const boost::program_options::positional_options_description& positional = {});

}  // namespace rekernel

#pragma once

#include <string>

#include "harness/records/table.h"
#include "harness/terminal/arguments.h"

namespace rekernel {

/// Adds --wide, for a command that shows tables.
void add_wide_option(boost::program_options::options_description& options);
/// Adds --wide and --csv, for one whose output can be one table.
void add_table_options(boost::program_options::options_description& options);

/// How a command shows its tables.
struct TableFormat {
  TextStyle style;
  bool csv = false;

  /// The table, and under it what shortened cells mean and which columns were left out.
  std::string shown(const Table& table) const;
  /// Words under a table: none in CSV.
  std::string words(const std::string& text) const;
};
/// For this standard output: colours only on a terminal, and none where NO_COLOR is set
/// (no-color.org); lines as output_columns() says.
TextStyle terminal_style();
/// The same, as the options ask.
TableFormat table_format(const ParsedArguments& parsed);

}  // namespace rekernel

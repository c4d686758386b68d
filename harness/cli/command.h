#pragma once

#include <boost/program_options.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/records/table.h"
#include "ops/result.h"

namespace rekernel {

inline constexpr int exit_good = 0;
inline constexpr int exit_verdict_failed = 1;
inline constexpr int exit_bad_input = 2;

/// One subcommand of `rekernel`. `run` gets the arguments after the subcommand's name and returns
/// the exit status.
struct Command {
  const char* name;
  const char* summary;
  int (*run)(const std::vector<std::string>& arguments);
};

int bench_command(const std::vector<std::string>& arguments);
int capture_command(const std::vector<std::string>& arguments);
int check_command(const std::vector<std::string>& arguments);
int compile_worker_command(const std::vector<std::string>& arguments);
int evaluate_job_command(const std::vector<std::string>& arguments);
int doctor_command(const std::vector<std::string>& arguments);
int errors_command(const std::vector<std::string>& arguments);
int evaluate_command(const std::vector<std::string>& arguments);
int export_command(const std::vector<std::string>& arguments);
int list_command(const std::vector<std::string>& arguments);
int new_command(const std::vector<std::string>& arguments);
int blinding_command(const std::vector<std::string>& arguments);
int noise_command(const std::vector<std::string>& arguments);
int problem_command(const std::vector<std::string>& arguments);
int replay_command(const std::vector<std::string>& arguments);
int referee_worker_command(const std::vector<std::string>& arguments);
int report_command(const std::vector<std::string>& arguments);
int reproduce_command(const std::vector<std::string>& arguments);
int results_command(const std::vector<std::string>& arguments);
int runner_worker_command(const std::vector<std::string>& arguments);
int search_command(const std::vector<std::string>& arguments);
int verify_command(const std::vector<std::string>& arguments);

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

/// Prints "rekernel: <message>" to standard error and returns exit_bad_input.
int bad_input(const Error& error);

/// The exit status once all was printed: exit_bad_input, with a line on standard error, if standard
/// output could not take it. Where nobody reads it any more, the program ends by SIGPIPE as others
/// do.
int after_output(int exit_status);

/// The project that is read: the one that the working directory is in, the nearest folder at or
/// above it that holds `generated/` and `results/`; else the folder that the program was built
/// from, which is then said once on standard error.
std::filesystem::path project_root();
/// The project that is written to: only the one that the working directory is in. A program that
/// was copied would otherwise change a project that its user does not think of.
Result<std::filesystem::path> own_project();

/// Adds --wide and --csv, for a command that shows tables.
void add_table_options(boost::program_options::options_description& options);

/// How a command shows its tables.
struct TableFormat {
  TextStyle style;
  bool csv = false;

  /// The table, and under it, if columns were left out, their names.
  std::string shown(const Table& table) const;
  /// Words under a table: none in CSV.
  std::string words(const std::string& text) const;
};
/// For this standard output: colours only on a terminal, and none where NO_COLOR is set
/// (no-color.org); lines of at most 100 columns, or of a narrower terminal's.
TextStyle terminal_style();
/// The same, as the options ask.
TableFormat table_format(const ParsedArguments& parsed);

/// A line on standard error that is rewritten in place, on terminals only. Cleared when it goes.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view text);
  /// "[3/12] TEXT, about 40 s left", where `done` of `total` parts of a work are done.
  void step(std::size_t done, std::size_t total, std::string_view text);

 private:
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace rekernel

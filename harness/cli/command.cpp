#include "harness/cli/command.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "harness/base/text.h"
#include "harness/base/time_left.h"
#include "harness/base/utf8.h"

namespace rekernel {

namespace po = boost::program_options;

ParsedArguments parse_arguments(const std::vector<std::string>& arguments, const std::string& usage,
                                const std::string& example, const po::options_description& options,
                                const po::positional_options_description& positional) {
  ParsedArguments parsed;
  po::options_description visible("Options");
  visible.add(options).add_options()("help", po::bool_switch(), "print this text");
  try {
    po::store(po::command_line_parser(arguments).options(visible).positional(positional).run(),
              parsed.values);
    if (parsed.flag("help")) {
      std::cout << "Usage: " << usage << "\n\n" << visible << "\nExample:\n  " << example << "\n";
      parsed.exit_status = exit_good;
      return parsed;
    }
    po::notify(parsed.values);
  } catch (const po::error& error) {
    parsed.exit_status = bad_input(Error{std::string(error.what()) + "; usage: " + usage});
  }
  return parsed;
}

int bad_input(const Error& error) {
  // Messages may name files and quote texts of strangers, whose lines must not pass for ours.
  constexpr std::size_t longest = 64u << 10;
  std::istringstream lines(visible_lines(error.message, longest));
  std::string line;
  std::getline(lines, line);
  std::cerr << "rekernel: " << line << "\n";
  while (std::getline(lines, line))
    std::cerr << (line.starts_with("  ") ? "" : "  ") << line << "\n";
  return exit_bad_input;
}

int after_output(int exit_status) {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = errno;
  if (std::cout.good() && flushed && std::ferror(stdout) == 0) return exit_status;
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  const bool nobody_reads =
      reason == EPIPE || (::poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0);
  if (nobody_reads) {
    // Who starts children ignores the signal (run_child).
    ::signal(SIGPIPE, SIG_DFL);
    ::raise(SIGPIPE);
  }
  return bad_input(Error{"standard output: not everything could be written" +
                         (reason ? std::string(": ") + std::strerror(reason) : "")});
}

namespace {

/// Empty where the working directory is in no project.
std::filesystem::path project_around() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (fs::path folder = fs::current_path(ignored); !folder.empty();
       folder = folder.parent_path()) {
    if (fs::is_directory(folder / "generated", ignored) &&
        fs::is_directory(folder / "results", ignored)) {
      return folder;
    }
    if (folder == folder.root_path()) break;
  }
  return {};
}

}  // namespace

std::filesystem::path project_root() {
  std::filesystem::path around = project_around();
  if (!around.empty()) return around;
  static const bool said = [] {
    std::cerr << "rekernel: the working directory is in no project: using " << REKERNEL_SOURCE_DIR
              << ", which this program was built from\n";
    return true;
  }();
  static_cast<void>(said);
  return REKERNEL_SOURCE_DIR;
}

Result<std::filesystem::path> own_project() {
  std::filesystem::path around = project_around();
  if (!around.empty()) return around;
  return Error{
      "the working directory is in no project, and nothing is written elsewhere: expected a folder "
      "at or above it that holds generated/ and results/"};
}

void add_table_options(po::options_description& options) {
  options.add_options()("wide", po::bool_switch(),
                        "all columns of the tables, however long the lines get")(
      "csv", po::bool_switch(), "the tables as CSV");
}

std::string TableFormat::shown(const Table& table) const {
  if (csv) return to_csv(table);
  std::string text = to_text(table, style);
  const std::vector<std::string> missing = left_out(table, style);
  if (!missing.empty()) {
    text += "\n" + words("Left out for want of room: " + joined(missing) + ". --wide shows them.");
  }
  return text;
}

std::string TableFormat::words(const std::string& text) const {
  return csv ? "" : wrapped(text, style.width) + "\n";
}

TextStyle terminal_style() {
  TextStyle style;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* const no_color = ::getenv("NO_COLOR");
  const char* const kind = ::getenv("TERM");
  style.colour =
      terminal && (!no_color || *no_color == '\0') && kind && std::string_view(kind) != "dumb";
  if (winsize size{}; terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    constexpr std::size_t least = 40;
    if (size.ws_col >= least && size.ws_col < style.width) style.width = size.ws_col;
  }
  return style;
}

TableFormat table_format(const ParsedArguments& parsed) {
  TableFormat format{terminal_style(), parsed.flag("csv")};
  if (parsed.flag("wide")) format.style.width = 0;
  return format;
}

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { show(""); }

void Progress::show(std::string_view text) {
  constexpr const char* clear_line = "\r\x1b[K";
  if (terminal_) std::cerr << clear_line << text << std::flush;
}

void Progress::step(std::size_t done, std::size_t total, std::string_view text) {
  if (!terminal_) return;
  const std::string left = time_left(std::chrono::steady_clock::now() - start_, done, total);
  show("[" + std::to_string(done) + "/" + std::to_string(total) + "] " + std::string(text) +
       (left.empty() ? "" : ", " + left));
}

}  // namespace rekernel

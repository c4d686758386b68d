#include "harness/cli/command.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <sstream>

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
  std::cerr << "rekernel: " << error.message << "\n";
  return exit_bad_input;
}

std::filesystem::path project_root() {
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
  return REKERNEL_SOURCE_DIR;
}

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { show(""); }

void Progress::show(std::string_view text) {
  constexpr const char* clear_line = "\r\x1b[K";
  if (terminal_) std::cerr << clear_line << text << std::flush;
}

}  // namespace rekernel

#include "harness/terminal/arguments.h"

#include <iostream>

#include "harness/terminal/exit_status.h"

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

}  // namespace rekernel

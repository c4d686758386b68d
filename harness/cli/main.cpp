#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <iostream>

#include "harness/cli/command.h"
#include "harness/cli/commands.h"
#include "harness/gpu/identity.h"
#include "harness/problems/catalog.h"
#include "harness/project/root.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/window.h"

namespace {

using Words = std::vector<std::string>;

/// Started by this program for itself, and by the scripts of shells.
struct HiddenCommand {
  const char* name;
  int (*run)(const Words& arguments);
};
constexpr std::array hidden_commands{
    HiddenCommand{"complete", rekernel::complete_command},
    HiddenCommand{"evaluate-job", rekernel::evaluate_job_command},
    HiddenCommand{"compile-worker", rekernel::compile_worker_command},
    HiddenCommand{"listing-worker", rekernel::listing_worker_command},
    HiddenCommand{"referee-worker", rekernel::referee_worker_command},
    HiddenCommand{"runner-worker", rekernel::runner_worker_command},
    HiddenCommand{"truth-worker", rekernel::truth_worker_command},
};

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

/// Everything that the first words decide.
int run(const Words& words) {
  if (words.empty()) {
    std::cerr << rekernel::overview(rekernel::output_columns());
    return rekernel::exit_bad_input;
  }
  for (const HiddenCommand& one : hidden_commands) {
    if (words[0] == one.name) return one.run({words.begin() + 1, words.end()});
  }
  if (asks_for_help(words[0])) {
    std::cout << rekernel::overview(rekernel::output_columns());
    return rekernel::exit_good;
  }
  if (words[0] == "--version") {
    const bool json = words.size() == 2 && words[1] == "--json";
    if (words.size() == 1 || json) return rekernel::print_version(json);
    return rekernel::bad_input(
        {"--version: expected nothing or --json after it; see rekernel help"});
  }
  if (const rekernel::Command* command = rekernel::command_of(words)) {
    const auto rest = words.begin() + static_cast<std::ptrdiff_t>(words_of_name(*command));
    return command->run({command->name, command->summary, {rest, words.end()}});
  }
  // "problem", which is the first word of commands.
  if (!rekernel::listed_commands(words[0]).empty()) {
    const bool asked = words.size() == 2 && asks_for_help(words[1]);
    if (words.size() == 1 || asked) {
      (asked ? std::cout : std::cerr)
          << rekernel::overview_of(words[0], rekernel::output_columns());
      return asked ? rekernel::exit_good : rekernel::exit_bad_input;
    }
  }
  return rekernel::bad_input(rekernel::unknown_command(words));
}

}  // namespace

int main(int argc, char** argv) {
  rekernel::number_gpus_by_bus();
  try {
    const std::filesystem::path project = rekernel::project_around();
    if (!project.empty()) rekernel::read_problems_of(project);
    return rekernel::after_output(run({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    return rekernel::bad_input(rekernel::Error{error.what()});
  }
}

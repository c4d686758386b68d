#include <array>
#include <exception>
#include <iostream>

#include "harness/base/harness_digest.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/gpu/identity.h"
#include "harness/terminal/exit_status.h"

namespace {

using rekernel::Command;

constexpr std::array commands{
    Command{"doctor", "what this machine has, and what that allows", rekernel::doctor_command},
    Command{"list", "problems, references, kernels and trajectories", rekernel::list_command},
    Command{"problem", "check a problem's file; compare definitions with PyTorch",
            rekernel::problem_command},
    Command{"check", "validate and compile candidates; needs no GPU", rekernel::check_command},
    Command{"bench", "judge and time the committed kernels on this GPU", rekernel::bench_command},
    Command{"reproduce", "the table of % of reference: measured, or recorded without a GPU",
            rekernel::reproduce_command},
    Command{"evaluate", "judge and time one candidate folder", rekernel::evaluate_command},
    Command{"blinding", "can a kernel tell which of its runs are timed, judged or repeated?",
            rekernel::blinding_command},
    Command{"noise", "time the same work against itself: do the intervals hold?",
            rekernel::noise_command},
    Command{"errors", "verdicts on kernels and mutants, and their errors beside the bounds",
            rekernel::errors_command},
    Command{"capture", "judge what a PyTorch or Triton program launches",
            rekernel::capture_command},
    Command{"new", "scaffold a correct, slow candidate to start from", rekernel::new_command},
    Command{"export", "a kernel for C++ programs or for PyTorch", rekernel::export_command},
    Command{"search", "search for kernels with language models", rekernel::search_command},
    Command{"replay", "replay a recorded search", rekernel::replay_command},
    Command{"serve", "verdicts as a service, over HTTP", rekernel::serve_command},
    Command{"task", "tasks for agents in Harbor's format", rekernel::task_command},
    Command{"report", "the recorded results as text or Markdown", rekernel::report_command},
    Command{"results", "merge, rank, compare and sign what was measured",
            rekernel::results_command},
    Command{"verify", "everything that a pull request must pass", rekernel::verify_command},
};

/// Started by this program for itself.
constexpr std::array workers{
    Command{"evaluate-job", "", rekernel::evaluate_job_command},
    Command{"compile-worker", "", rekernel::compile_worker_command},
    Command{"referee-worker", "", rekernel::referee_worker_command},
    Command{"runner-worker", "", rekernel::runner_worker_command},
};

void print_usage(std::ostream& out) {
  out << "Usage: rekernel COMMAND [options]\n\nCommands:\n";
  for (const Command& command : commands) {
    out << "  " << command.name << std::string(12 - std::string_view(command.name).size(), ' ')
        << command.summary << "\n";
  }
  out << "\n`rekernel COMMAND --help` tells the options of each.\n"
         "Exit status: 0 good, 1 a verdict failed, 2 bad usage or input; 3 a search waits for "
         "replies\n"
         "or for a GPU.\n";
}

int run(const std::string& name, const std::vector<std::string>& arguments) {
  for (const Command& worker : workers) {
    if (name == worker.name) return worker.run(arguments);
  }
  for (const Command& command : commands) {
    if (name == command.name) return command.run(arguments);
  }
  std::vector<std::string> names;
  for (const Command& command : commands) names.emplace_back(command.name);
  const std::string meant = rekernel::nearest(name, names);
  return rekernel::bad_input({"unknown command '" + name + "'" +
                              (meant.empty() ? "" : " (did you mean '" + meant + "'?)") +
                              "; `rekernel --help` lists the commands"});
}

/// Everything that a command's name decides.
int run_all(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    print_usage(std::cerr);
    return rekernel::exit_bad_input;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print_usage(std::cout);
    return rekernel::exit_good;
  }
  if (arguments[0] == "--version") {
    std::cout << "rekernel " << REKERNEL_VERSION << "\njudge " << rekernel::harness_digests().judge
              << "\n";
    return rekernel::exit_good;
  }
  return run(arguments[0], {arguments.begin() + 1, arguments.end()});
}

}  // namespace

int main(int argc, char** argv) {
  rekernel::number_gpus_by_bus();
  try {
    return rekernel::after_output(run_all({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    return rekernel::bad_input(rekernel::Error{error.what()});
  }
}

#include "harness/jobs/slurm_client.h"

#include <utility>

#include "harness/base/utf8.h"
#include "harness/process/tool.h"

namespace rekernel {

SlurmClient::SlurmClient(SlurmJobOptions options,
                         std::optional<std::vector<std::string>> environment,
                         std::chrono::milliseconds answer)
    : options_(std::move(options)), environment_(std::move(environment)), answer_(answer) {}

Result<Ok> SlurmClient::check(const std::string& script) const {
  for (const char* tool : {"sbatch", "squeue", "scancel"}) {
    if (Result<Ok> runs = check_tool(tool); !runs) return runs;
  }
  ToolCommand trial;
  trial.arguments = sbatch_arguments(options_, "rekernel-trial", 1, {});
  trial.arguments.insert(trial.arguments.begin() + 1, "--test-only");
  trial.input = script;
  trial.environment = environment_;
  trial.deadline = answer_;
  const Result<ToolOutcome> outcome = run_tool(trial);
  if (!outcome) return outcome.error();
  if (!outcome->good() && refusal_of(outcome->last_words) != SlurmRefusal::full) {
    return Error{refusal_text(outcome->last_words)};
  }
  const auto tasks = list({"rekernel-trial"});
  if (!tasks) return Error{"--launcher slurm: squeue: " + tasks.error().message};
  return Ok{};
}

Result<Ok> SlurmClient::check_tool(const char* name) const {
  ToolCommand command;
  command.arguments = {name, "--version"};
  command.environment = environment_;
  command.deadline = answer_;
  const Result<ToolOutcome> outcome = run_tool(command);
  if (!outcome) return outcome.error();
  if (outcome->good()) return Ok{};
  const std::string what = outcome->exit_status == no_such_program
                               ? std::string("no ") + name + " in the folders of PATH"
                               : std::string(name) + " does not run: " + outcome->last_words;
  return Error{"--launcher slurm: " + what +
               ": expected Slurm's commands, as a login node has them"};
}

Result<std::string> SlurmClient::submit(const SlurmJobOptions& options, const std::string& name,
                                        std::size_t tasks,
                                        const std::vector<std::string>& excluded_nodes,
                                        const std::string& script) const {
  const Result<std::string> answer =
      ask(sbatch_arguments(options, name, tasks, excluded_nodes), script);
  if (!answer) return answer;
  return answer->substr(0, answer->find_first_of(";\n"));  // "123" or "123;cluster"
}

Result<std::vector<SlurmTask>> SlurmClient::list(const std::vector<std::string>& names) const {
  const Result<std::string> output = ask(squeue_arguments(names));
  if (!output) return output.error();
  return parse_squeue(*output);
}

Result<Ok> SlurmClient::cancel(const std::vector<std::string>& jobs) const {
  std::vector<std::string> arguments = {"scancel", "--quiet"};
  arguments.insert(arguments.end(), jobs.begin(), jobs.end());
  if (const Result<std::string> answer = ask(arguments); !answer) return answer.error();
  return Ok{};
}

std::string SlurmClient::refusal_text(const std::string& message) const {
  std::string asked = "--time " + options_.time;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) asked += std::string(", --") + option + " " + value;
  };
  add("partition", options_.partition);
  add("account", options_.account);
  add("constraint", options_.constraint);
  for (const std::string& flag : options_.flags) asked += ", " + flag;
  return "--launcher slurm: Slurm rejects such a job: " + message + " (one GPU, " +
         one_line(asked, 256) + ")";
}

Result<std::string> SlurmClient::ask(const std::vector<std::string>& arguments,
                                     const std::string& input) const {
  ToolCommand command;
  command.arguments = arguments;
  command.input = input;
  command.environment = environment_;
  command.deadline = answer_;
  Result<ToolOutcome> outcome = run_tool(command);
  if (!outcome) return outcome.error();
  if (!outcome->good()) return Error{outcome->last_words};
  return std::move(outcome->output);
}

}  // namespace rekernel

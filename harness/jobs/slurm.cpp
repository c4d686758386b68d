#include "harness/jobs/slurm.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <sstream>
#include <string_view>

#include "harness/base/json.h"
#include "harness/base/text.h"

namespace rekernel {

namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char character) { return std::tolower(character); });
  return text;
}

template <std::size_t count>
bool has_any(const std::string& text, const std::array<const char*, count>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

constexpr std::array unreachable_words = {
    "unable to contact",  "timed out",           "connect", "communication", "zero bytes",
    "backup controller",  "authentication",      "munge",   "i/o error",     "standby",
    "did not end within", "configuration source"};
constexpr std::array permanent_words = {"invalid",
                                        "not available",
                                        "not found",
                                        "no such",
                                        "denied",
                                        "not permitted",
                                        "not allowed",
                                        "unrecognized option",
                                        "unknown option",
                                        "no partition",
                                        "requires an argument",
                                        "can not be satisfied",
                                        "cannot be satisfied",
                                        "more processors requested"};

std::string nth_field(std::string& line) {
  const std::size_t end = line.find('|');
  std::string field = line.substr(0, end);
  line.erase(0, end == std::string::npos ? end : end + 1);
  const std::size_t last = field.find_last_not_of(' ');
  return one_line(field.substr(0, last == std::string::npos ? 0 : last + 1), 256);
}

}  // namespace

std::vector<std::string> sbatch_arguments(const SlurmJobOptions& options, const std::string& name,
                                          std::size_t tasks,
                                          const std::vector<std::string>& excluded_nodes) {
  std::vector<std::string> arguments = {"sbatch",
                                        "--parsable",
                                        "--job-name=" + name,
                                        "--nodes=1",
                                        "--ntasks=1",
                                        "--gres=gpu:1",
                                        "--no-requeue",
                                        "--chdir=/",
                                        "--output=/dev/null",
                                        "--time=" + options.time};
  if (tasks > 1) arguments.push_back("--array=0-" + std::to_string(tasks - 1));
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) arguments.push_back(option + value);
  };
  add("--partition=", options.partition);
  add("--account=", options.account);
  add("--constraint=", options.constraint);
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  if (excluded_nodes.empty()) return arguments;
  // The last --exclude is the one that counts.
  std::vector<std::string> nodes = excluded_nodes;
  for (const std::string& flag : options.flags) {
    constexpr std::string_view option = "--exclude=";
    if (flag.starts_with(option)) nodes.push_back(flag.substr(option.size()));
  }
  add("--exclude=", joined(nodes, ","));
  return arguments;
}

SlurmRefusal refusal_of(const std::string& message) {
  const std::string text = lower_case(message);
  if (text.find("invalid job array") != std::string::npos) return SlurmRefusal::array;
  if (text.find("temporarily unavailable") != std::string::npos) return SlurmRefusal::full;
  if (text.find("not available now") != std::string::npos) return SlurmRefusal::full;
  if (has_any(text, unreachable_words)) return SlurmRefusal::unreachable;
  if (has_any(text, permanent_words)) return SlurmRefusal::permanent;
  return SlurmRefusal::full;
}

std::vector<std::string> squeue_arguments(const std::vector<std::string>& names) {
  return {"squeue",
          "--me",
          "--array",
          "--noheader",
          "--states=all",
          "--name=" + joined(names, ","),
          "--Format=ArrayJobID:|,ArrayTaskID:|,State:|,exit_code:|,NodeList:|,Name:|,Reason:|,"
          "RestartCnt:|"};
}

Result<std::vector<SlurmTask>> parse_squeue(const std::string& output) {
  std::vector<SlurmTask> tasks;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::string whole = line;
    SlurmTask task;
    task.job = nth_field(line);
    const std::string index = nth_field(line);
    task.state = nth_field(line);
    const std::string status = nth_field(line);
    task.node = nth_field(line);
    task.name = nth_field(line);
    task.reason = nth_field(line);
    const std::string restarts = nth_field(line);
    const auto number = [&](const std::string& text, auto& value) {
      const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
      return code == std::errc() && end == text.data() + text.size();
    };
    if ((index != "N/A" && !number(index, task.index)) || !number(status, task.wait_status) ||
        !number(restarts, task.restarts) || task.job.empty() || task.name.empty()) {
      return Error{
          "squeue: expected job, task, state, status, node, name, reason and restarts, got '" +
          one_line(whole, 200) + "'"};
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

bool is_over(const SlurmTask& task) {
  constexpr std::array over = {"COMPLETED", "FAILED",    "TIMEOUT",       "NODE_FAIL", "PREEMPTED",
                               "CANCELLED", "BOOT_FAIL", "OUT_OF_MEMORY", "DEADLINE",  "REVOKED"};
  return std::any_of(over.begin(), over.end(),
                     [&](const char* state) { return task.state.starts_with(state); });
}

bool is_no_place_for_jobs(const SlurmTask& task) {
  if (!WIFEXITED(task.wait_status)) return false;
  const int status = WEXITSTATUS(task.wait_status);
  return status == no_shared_folder || status == no_program || status == no_writing;
}

std::string what_ended(const SlurmTask& task, const SlurmJobOptions& options,
                       const std::string& folder, const std::string& program) {
  const std::string where = "job " + task.job + (task.node.empty() ? "" : " on " + task.node) + " ";
  const std::string& state = task.state;
  if (state == "TIMEOUT" || state == "DEADLINE") {
    return where + "did not finish in its time (--time " + options.time + ")";
  }
  if (state == "NODE_FAIL" || state == "BOOT_FAIL") return where + "was lost with its node";
  if (state == "PREEMPTED") return where + "was pre-empted (PREEMPTED)";
  if (state.starts_with("CANCELLED")) return where + "was cancelled";
  if (state == "OUT_OF_MEMORY") {
    return where + "had too little memory (--slurm-flag=--mem=SIZE asks for more)";
  }
  const int status = WIFEXITED(task.wait_status) ? WEXITSTATUS(task.wait_status) : 0;
  if (status == no_shared_folder) {
    return where + "does not see " + folder +
           ": expected a folder on a file system that this machine and the nodes share "
           "(--jobs-folder)";
  }
  if (status == no_writing) {
    return where + "cannot write into " + folder + ": expected a folder that is yours there too";
  }
  if (status == no_program) {
    return where + "does not find " + program +
           ", or cannot run it: expected this program there too (--job-program)";
  }
  if (state == "COMPLETED") {
    return where + "ended well, but its result never came: is " + folder +
           " on a file system that both share?";
  }
  if (state.empty()) return where + "is unknown to Slurm, and no result came";
  return where + "ended as " + state + " (" + task.reason + ", status " +
         std::to_string(WIFEXITED(task.wait_status) ? status : task.wait_status) + ")";
}

}  // namespace rekernel

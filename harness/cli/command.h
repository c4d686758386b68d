#pragma once

#include <string>
#include <vector>

namespace rekernel {

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
int serve_command(const std::vector<std::string>& arguments);
int task_command(const std::vector<std::string>& arguments);
int verify_command(const std::vector<std::string>& arguments);

}  // namespace rekernel

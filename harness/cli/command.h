#pragma once

#include <string>
#include <vector>

#include "harness/terminal/arguments.h"

namespace rekernel {

// The commands. Each gives its arguments to parse_arguments() first, and returns the exit status.
int bench_command(const Arguments& arguments);
int blinding_command(const Arguments& arguments);
int capture_command(const Arguments& arguments);
int check_command(const Arguments& arguments);
int claims_command(const Arguments& arguments);
int completion_command(const Arguments& arguments);
int dataset_atif_command(const Arguments& arguments);
int dataset_command(const Arguments& arguments);
int dataset_import_command(const Arguments& arguments);
int dataset_judge_command(const Arguments& arguments);
int doctor_command(const Arguments& arguments);
int errors_command(const Arguments& arguments);
int evaluate_command(const Arguments& arguments);
int explain_command(const Arguments& arguments);
int export_command(const Arguments& arguments);
int help_command(const Arguments& arguments);
int list_command(const Arguments& arguments);
int new_command(const Arguments& arguments);
int noise_command(const Arguments& arguments);
int problem_check_command(const Arguments& arguments);
int problem_import_command(const Arguments& arguments);
int problem_mutants_command(const Arguments& arguments);
int problem_verify_command(const Arguments& arguments);
int profile_command(const Arguments& arguments);
int replay_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int reproduce_command(const Arguments& arguments);
int results_command(const Arguments& arguments);
int search_command(const Arguments& arguments);
int serve_command(const Arguments& arguments);
int show_command(const Arguments& arguments);
int study_command(const Arguments& arguments);
int task_command(const Arguments& arguments);
int verify_command(const Arguments& arguments);

// Those that this program starts for itself, and that scripts of shells ask.
int compile_worker_command(const std::vector<std::string>& arguments);
int complete_command(const std::vector<std::string>& arguments);
int evaluate_job_command(const std::vector<std::string>& arguments);
int listing_worker_command(const std::vector<std::string>& arguments);
int referee_worker_command(const std::vector<std::string>& arguments);
int runner_worker_command(const std::vector<std::string>& arguments);
int truth_worker_command(const std::vector<std::string>& arguments);

}  // namespace rekernel

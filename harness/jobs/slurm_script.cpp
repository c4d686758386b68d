#include "harness/jobs/slurm_script.h"

#include "harness/jobs/slurm.h"
#include "harness/process/tool.h"

namespace rekernel {

namespace {

/// What a job adds to its log's name where it is pre-empted.
constexpr const char* preempted_mark = ".preempted";

std::string script_begin(const JobFolder& folder, const std::string& program) {
  return "#!/bin/sh\n"
         "folder=" +
         shell_quoted(folder.path().string()) +
         "\n"
         "program=" +
         shell_quoted(program) +
         "\n"
         // A node may remember for half a minute that there is no such name on a network file
         // system, until it lists the folder that holds it.
         "look() {\n"
         "  case $1 in /*/*) look \"${1%/*}\" ;; /*) ls / >/dev/null 2>&1 ;; esac\n"
         "  ls \"$1\" >/dev/null 2>&1\n"
         "}\n"
         "sees() { [ \"$(cat \"$folder/token\" 2>/dev/null)\" = " +
         folder.token() +
         " ]; }\n"
         "sees || { look \"$folder\"; sees; } || exit " +
         std::to_string(no_shared_folder) +
         "\n"
         "[ -x \"$program\" ] || { look \"$program\"; [ -x \"$program\" ]; } || exit " +
         std::to_string(no_program) +
         "\n"
         "[ -w \"$folder/results\" ] || exit " +
         std::to_string(no_writing) + "\n";
}

}  // namespace

std::string evaluation_script(const JobFolder& folder, const std::string& program,
                              const std::string& batch) {
  return script_begin(folder, program) +
         "task=${SLURM_ARRAY_TASK_ID:-0}\n"
         "log=$folder/logs/" +
         batch +
         ".$task\n"
         "key=$(sed -n \"$((task + 1))p\" \"$folder/batches/" +
         batch +
         "\")\n"
         "job=$SLURM_JOB_ID\n"
         "[ -z \"$SLURM_ARRAY_TASK_ID\" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\n"
         "end_early() {\n"
         "  trap '' TERM\n"
         "  kill \"$running\"\n"
         "  scontrol show job -o \"$job\" | grep -q 'PreemptTime=[0-9]' && : >\"$log" +
         preempted_mark +
         "\"\n"
         "  exit 143\n"
         "}\n"
         "rm -f \"$log" +
         preempted_mark +
         "\"\n"
         "\"$program\" evaluate-job \"$folder\" \"$key\" >\"$log\" 2>&1 &\n"
         "running=$!\n"
         "trap end_early TERM\n"
         "wait \"$running\" || exit\n"
         "rm -f \"$log\"\n";
}

std::string probe_script(const JobFolder& folder, const std::string& program,
                         const std::string& word) {
  const std::string seen = shell_quoted(folder.seen().string());
  return script_begin(folder, program) + "\"$program\" --help >/dev/null 2>&1 || exit " +
         std::to_string(no_program) + "\n" + "echo " + word + " >" + seen +
         ".$SLURM_JOB_ID && mv " + seen + ".$SLURM_JOB_ID " + seen + " || exit " +
         std::to_string(no_writing) + "\n";
}

bool left_word_of_preemption(const std::set<std::string>& logs, const std::string& batch,
                             std::size_t index) {
  return logs.contains(batch + "." + std::to_string(index) + preempted_mark);
}

}  // namespace rekernel

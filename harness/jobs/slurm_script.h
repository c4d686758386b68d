#pragma once

#include <set>
#include <string>

#include "harness/jobs/job_folder.h"

namespace rekernel {

// What jobs run on their nodes. Slurm copies the script there: the folder is needed only once it
// runs. A job that finds no folder or no program, or cannot write into the folder, ends with the
// exit status that says so (slurm.h).

/// Evaluates the candidate whose key stands in the line of the batch's manifest that the task's
/// index says.
std::string evaluation_script(const JobFolder& folder, const std::string& program,
                              const std::string& batch);

/// Leaves a word in the folder. Runs the program too: one that finds no library there would fail
/// for every candidate.
std::string probe_script(const JobFolder& folder, const std::string& program,
                         const std::string& word);

/// Whether a task's job left word, among the folder's logs, that Slurm pre-empted it. Slurm says so
/// itself for a while, but not where it forgets jobs soon.
bool left_word_of_preemption(const std::set<std::string>& logs, const std::string& batch,
                             std::size_t index);

}  // namespace rekernel

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "ops/result.h"

namespace rekernel {

/// The committed candidates of `root`, all or those of the named problems and kernels. A kernel is
/// named as everywhere ("softmax/online", "generated/softmax/online", its folder as the working
/// directory sees it), and a problem by its id or by its folder. Fails for a folder elsewhere.
Result<std::vector<Candidate>> committed_candidates(const std::filesystem::path& root,
                                                    const std::vector<std::string>& names = {});

/// Committed kernels of a project as PROBLEM/NAME, sorted; none where they cannot be listed.
std::vector<std::string> kernel_names(const std::filesystem::path& root);

/// The folder of the candidate that somebody names: a folder with a kernel.json, as the working
/// directory sees it; else "softmax/online" or "generated/softmax/online" of the project. Fails for
/// other names, with those that may have been meant.
Result<std::filesystem::path> candidate_folder(const std::string& name);

/// The candidate in that folder.
Result<Candidate> named_candidate(const std::string& name);

/// The same for a command that takes problems as well, and was given no problem's id: what is
/// unknown may have been meant as one.
Result<Candidate> named_candidate_beside_problems(const std::string& name);

/// Candidates in the order in which they are named, each once. A problem, or its folder, stands for
/// its committed kernels.
Result<std::vector<Candidate>> named_candidates(const std::vector<std::string>& names);

}  // namespace rekernel

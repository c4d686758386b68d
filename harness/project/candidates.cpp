#include "harness/project/candidates.h"

#include <algorithm>

#include "harness/candidate/code.h"
#include "harness/candidate/known_problem.h"
#include "harness/problems/catalog.h"

namespace rekernel {

namespace {

/// Whether a folder is what one of the names asks for: a problem, or a kernel of it.
bool is_asked_for(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  const std::string problem = folder.parent_path().filename().string();
  const std::string kernel = problem + "/" + folder.filename().string();
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return name == problem || name == kernel;
         });
}

Result<Ok> check_names(const std::vector<std::filesystem::path>& folders,
                       const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool found = std::any_of(folders.begin(), folders.end(), [&](const auto& folder) {
      return is_asked_for(folder, {name});
    });
    if (found) continue;
    if (name.find('/') != std::string::npos) {
      return Error{"unknown kernel '" + name +
                   "': expected PROBLEM/NAME of a folder in generated/"};
    }
    if (find_problem(name)) {
      return Error{"no kernel of " + name + " is in generated/: `rekernel new " + name +
                   " NAME` makes one"};
    }
    return Error{unknown_problem(name).message + ", and kernels are written PROBLEM/NAME"};
  }
  return Ok{};
}

}  // namespace

Result<std::vector<Candidate>> committed_candidates(const std::filesystem::path& root,
                                                    const std::vector<std::string>& names) {
  Result<std::vector<std::filesystem::path>> folders = candidate_directories(root);
  if (!folders) return folders.error();
  if (Result<Ok> known = check_names(*folders, names); !known) return known.error();
  std::vector<Candidate> candidates;
  for (const std::filesystem::path& folder : *folders) {
    if (!is_asked_for(folder, names)) continue;
    Result<Candidate> candidate = load_candidate(folder);
    if (!candidate) return candidate.error();
    candidates.push_back(std::move(*candidate));
  }
  return candidates;
}

}  // namespace rekernel

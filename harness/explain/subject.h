#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/explain/verdict.h"
#include "ops/result.h"

namespace rekernel {

/// A candidate that somebody asks about, with what is recorded of it.
struct Subject {
  std::string name;   ///< "softmax/mine", "mine r1.i1.b1"
  std::string place;  ///< folder or trajectory
  std::optional<Candidate> candidate;
  std::string refusal;  ///< why its plan or its reply holds no candidate; empty if it does
  std::vector<Verdict> verdicts;
};

/// The folder that a user names: one that is there, or that of a committed kernel (`problem/name`).
std::filesystem::path candidate_folder(const std::filesystem::path& root, const std::string& what);

/// The candidate in such a folder. An error where there is neither.
Result<Subject> subject_in_folder(const std::filesystem::path& root, const std::string& what);

/// A candidate of a search ("r1.i1.b1", "seed.1"), judged or not, of a finished search or of one
/// that goes on. `search` is a name below trajectories/ or a file.
Result<Subject> subject_of_search(const std::filesystem::path& root, const std::string& search,
                                  const std::string& id);

}  // namespace rekernel

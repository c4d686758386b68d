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
struct ExplainedCandidate {
  std::string name;   ///< "softmax/mine", "mine r1.i1.b1"
  std::string place;  ///< folder or trajectory
  std::optional<Candidate> candidate;
  std::string refusal;  ///< why its plan or its reply holds no candidate; empty if it does
  std::vector<Verdict> verdicts;
};

/// The candidate in the folder that somebody names, as candidate_folder() takes names; its records
/// are those of `root`.
Result<ExplainedCandidate> subject_in_folder(const std::filesystem::path& root,
                                             const std::string& what);

/// A candidate of a search ("r1.i1.b1", "seed.1"), judged or not, of a finished search or of one
/// that goes on. `search` is a name below trajectories/ or a file.
Result<ExplainedCandidate> subject_of_search(const std::filesystem::path& root,
                                             const std::string& search, const std::string& id);

}  // namespace rekernel

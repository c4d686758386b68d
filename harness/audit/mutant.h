#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/evaluation.h"
#include "ops/result.h"

namespace rekernel {

/// A kernel that is right but for one defect: an honest kernel and what is changed in it.
struct Mutant {
  std::string id;    ///< "matmul_fp16/wide_parts/skips_the_last_row"
  std::string what;  ///< the defect in one plain line
  std::filesystem::path base;
  std::vector<std::pair<std::string, std::string>> replacements;  ///< in kernel.cu: old, new
  boost::json::value plan_patch;                                  ///< null: none
  std::vector<Status> expected;  ///< one of these must be its status
  Badges refused_badges;         ///< with status `passed`: what it must not get
};

/// A correct kernel that must pass.
struct HonestKernel {
  std::string id;  ///< "matmul_fp16/wmma"
  std::filesystem::path folder;
  Badges badges;  ///< at least these
};

/// Every mutant of tests/mutants/*/*.json, in the order of files and lines. Throws on a file that
/// does not have the shape that tests/mutants/README.md describes.
std::vector<Mutant> all_mutants(const std::filesystem::path& root);

/// Every folder of tests/honest/, sorted.
std::vector<HonestKernel> all_honest_kernels(const std::filesystem::path& root);

/// `kernel.cu` and `kernel.json` of the mutant. Errors: an old text that does not occur exactly
/// once, a change that changes nothing.
struct MutatedFiles {
  std::string source;
  std::string plan;
};
Result<MutatedFiles> mutate(const Mutant& mutant);

/// The mutated files as a candidate.
Result<Candidate> mutated_candidate(const Mutant& mutant);

}  // namespace rekernel

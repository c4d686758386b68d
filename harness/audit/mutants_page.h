#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/audit/errors.h"
#include "harness/audit/mutant.h"
#include "ops/result.h"

namespace rekernel {

/// What the judge said of one mutant or one honest kernel on one device, and whether it was right.
struct JudgeOutcome {
  std::string id;
  std::string status;
  std::string caught_by;  ///< which check spoke; empty if none did
  std::string message;
  bool as_it_must = false;  ///< a mutant that was caught, an honest kernel that passed
};

JudgeOutcome mutant_outcome(const Mutant& mutant, const ErrorRow& row);
JudgeOutcome honest_outcome(const HonestKernel& kernel, const ErrorRow& row);

struct JudgeOutcomes {
  std::vector<JudgeOutcome> mutants;
  std::vector<JudgeOutcome> honest;
};

/// Outcomes of all mutants and honest kernels of the tree with a verdict in the record, in the
/// tree's order. Throws like all_mutants.
JudgeOutcomes judge_outcomes(const std::filesystem::path& root, const ErrorsRecord& record);

/// A Markdown item for each mutant that was not caught and each honest kernel that was refused.
std::string wrong_outcomes(const JudgeOutcomes& outcomes);

/// tests/mutants/README.md with the rates of every results/*/errors.json between its markers.
Result<std::string> mutants_page(const std::filesystem::path& root);

}  // namespace rekernel

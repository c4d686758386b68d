#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/compile/compile.h"
#include "harness/gpu/cuda.h"
#include "ops/definition/mutants.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// What became of a wrong definition's kernel.
enum class MutantFate {
  refused,     ///< it did not pass
  lost_badge,  ///< it passed without a badge that the slow candidate has
  missed,      ///< it has all that the slow candidate has
  equal,       ///< it is the truth, within FP32's rounding: not counted
};
const char* to_string(MutantFate fate);

struct JudgedMutant {
  std::string kind;
  std::string what;  ///< the statement as it became
  MutantFate fate = MutantFate::equal;
  std::string why;  ///< the first rejection, or the badge
};

/// How a problem's definition, its slow candidate and its mutants fared.
struct DefinitionAudit {
  std::string problem;
  bool passed = false;  ///< the slow candidate
  std::string why;      ///< it did not
  bool strict = false;
  bool robust = false;
  std::vector<std::string> stress_left_out;  ///< whose truth is not finite
  std::vector<JudgedMutant> mutants;

  std::int64_t count(MutantFate fate) const;
  std::int64_t kinds() const;  ///< of those that count
  /// The share of those that count which were rejected or lost a badge.
  double caught() const;
};

/// Runs the slow candidate and every mutant (ops/definition/mutants.h) on the problem's own inputs
/// and on each stress case, and judges them as the referee would. All code is ours, so that one
/// process does it. Compiles on `threads` threads. Errors: code that does not compile.
Result<DefinitionAudit> audit_definition(const Problem& problem, const Compiler& compiler,
                                         const Device& device, std::size_t threads);

}  // namespace rekernel

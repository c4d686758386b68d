#pragma once

#include <boost/json/fwd.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/records/problem_record.h"
#include "harness/records/table.h"
#include "ops/result.h"

namespace rekernel {

/// How a problem's slow candidate and the mutants of its definition fared.
struct MadeMutantsRow {
  std::string problem;
  std::string digest;    ///< of its file: problem_digest()
  std::string measured;  ///< date, YYYY-MM-DD
  bool passed = false;   ///< the slow candidate, …
  bool strict = false;
  bool robust = false;
  std::string why;  ///< why it did not pass, or has no `robust`
  std::vector<std::string> stress_left_out;
  /// By kind: mutants that were caught, and those that were not.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> kinds;
  std::int64_t equal = 0;           ///< the truth within FP32's rounding: not counted
  std::vector<std::string> missed;  ///< "kind: statement"
  std::string failure;              ///< why nothing was judged

  std::int64_t caught() const;
  std::int64_t counted() const;
};

/// What `problem mutants --json` prints and results/<gpu>/made_mutants.json holds.
using MadeMutantsRecord = ProblemRecord<MadeMutantsRow>;

boost::json::object to_json(const MadeMutantsRecord& record);
Result<MadeMutantsRecord> load_made_mutants(const std::filesystem::path& path);
/// Merges into results/<gpu>/made_mutants.json: merge_problem_record().
Result<std::filesystem::path> record_made_mutants(const std::filesystem::path& root,
                                                  const MadeMutantsRecord& measured);

/// A line for each problem.
Table made_mutants_table(const MadeMutantsRecord& record);

}  // namespace rekernel

#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/records/problem_record.h"
#include "harness/records/table.h"
#include "ops/result.h"

namespace rekernel {

/// A problem's definition beside PyTorch's expression of it, both in float64 on the same inputs.
struct DefinitionRow {
  struct Output {
    std::string name;
    std::string largest;       ///< difference, relative to the truth's root mean square: "3.1e-16"
    std::int64_t unequal = 0;  ///< of integers and conditions: elements that differ
    std::int64_t elements = 0;
    bool agrees = false;
  };

  std::string problem;
  std::string digest;                ///< of its file: problem_digest()
  std::string measured;              ///< date, YYYY-MM-DD
  std::int64_t truth_ns = 0;         ///< to make the truth of all outputs, inputs being there
  std::int64_t workspace_bytes = 0;  ///< that it takes for that
  std::vector<Output> outputs;
  std::string failure;  ///< why nothing was compared

  bool agrees() const;
};

/// What `problem verify --json` prints and results/<gpu>/definitions.json holds.
using DefinitionsRecord = ProblemRecord<DefinitionRow>;

boost::json::object to_json(const DefinitionsRecord& record);
Result<DefinitionsRecord> load_definitions(const std::filesystem::path& path);
/// Merges into results/<gpu>/definitions.json: merge_problem_record().
Result<std::filesystem::path> record_definitions(const std::filesystem::path& root,
                                                 const DefinitionsRecord& measured);

/// A line for each problem.
Table definitions_table(const DefinitionsRecord& record);

}  // namespace rekernel

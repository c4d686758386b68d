#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/evaluation.h"
#include "ops/result.h"

namespace rekernel {

/// results/<gpu>/imported.jsonl: other people's kernels, a line each, as they were judged here.
inline constexpr const char* imported_file = "imported.jsonl";

/// Somebody else's kernel and our verdict on it.
struct ImportedKernel {
  std::string name;     ///< unique on its device: "flashinfer/rmsnorm_h4096/a_solution"
  std::string from;     ///< which file and entry it was, and whose
  std::string license;  ///< SPDX identifier
  std::string program;  ///< the Python program that was captured; empty for a candidate
  Candidate candidate;
  Evaluation evaluation;
  /// recorded_evaluation(), with the date as "measured".
  boost::json::object record;

  std::string device() const;
};

boost::json::object to_json(const ImportedKernel& kernel);
/// Refuses a line without a whole verdict of ours, one whose plan is not its record's candidate,
/// and two lines of one name.
Result<std::vector<ImportedKernel>> load_imported(const std::filesystem::path& path);
/// Appends a line; the file's folder is made if there is none.
Result<Ok> append_imported(const std::filesystem::path& path, const ImportedKernel& kernel);

}  // namespace rekernel

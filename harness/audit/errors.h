#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/evaluation.h"
#include "harness/records/report.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// What an output comes from.
enum class ErrorSource { library, committed, scaffold, honest, mutant };
const char* to_string(ErrorSource source);

/// Errors against the float64 truth, each without a unit.
struct RelativeErrors {
  double rms = 0;        ///< ‖err‖ / ‖truth‖
  double largest = 0;    ///< max|err| / rms(truth)
  double tolerance = 0;  ///< max of |err| / (1e-2 + 1e-2·|truth|)
  double strict = 0;     ///< the same with 1e-4 and 1e-4
};
RelativeErrors relative_errors(const ErrorStats& stats);

/// The errors of one implementation of a problem and what the checks said of it.
struct ErrorRow {
  std::string problem;
  ErrorSource source = ErrorSource::library;
  std::string name;      ///< a reference's id, a kernel's name, a mutant's id without the problem
  std::string sha256;    ///< of the candidate; empty for a library
  std::string what;      ///< a mutant's defect
  std::string measured;  ///< date, YYYY-MM-DD
  /// Empty for what is not judged: a library, a kernel for newer devices than this one.
  std::string status;
  Badges badges;
  std::string message;                   ///< why it was rejected, or why a badge was refused
  std::string check;                     ///< which check refused the values; empty: none did
  std::optional<RelativeErrors> errors;  ///< none where nothing could be compared
};

/// results/<gpu>/errors.json
struct ErrorsRecord {
  std::string device_name;
  std::map<std::string, std::string> toolchain;  ///< component → version
  std::vector<ErrorRow> rows;
};

/// One thing to measure: a candidate, and the references whose errors are measured beside it.
struct ErrorSubject {
  ErrorSource source = ErrorSource::committed;
  std::string name;
  std::string what;
  Candidate candidate;
};

/// The scaffold, committed kernels, honest kernels and mutants of a problem. The error names a
/// folder or mutant that cannot be read.
Result<std::vector<ErrorSubject>> error_subjects(const std::filesystem::path& root,
                                                 const Problem& problem);

/// Rows for the subject and for every reference whose errors the evaluation holds.
std::vector<ErrorRow> error_rows(const ErrorSubject& subject, const Evaluation& evaluation);

/// Those of `subjects` that `record` has no row of with their present content.
std::vector<ErrorSubject> without_rows(std::vector<ErrorSubject> subjects,
                                       const ErrorsRecord& record);
/// `measured` with, in the order of `subjects`, the rows of `old` for what it leaves out, and the
/// libraries' rows of `old` where it has none.
ErrorsRecord completed(const ErrorsRecord& measured, const ErrorsRecord& old,
                       const std::vector<ErrorSubject>& subjects);

/// On what device rows were measured, and when: "NVIDIA H200, 2026-11-21 to 2026-11-22".
std::string caption(const std::string& device_name, const std::vector<ErrorRow>& rows);

/// The errors' greatest share of the problem's three bounds: above 1 the values are refused.
double share_of_bounds(const RelativeErrors& errors, const Tolerance& tolerance);

boost::json::object to_json(const ErrorsRecord& record);
Result<ErrorsRecord> errors_from_json(const boost::json::value& json, const std::string& where);
Result<ErrorsRecord> load_errors(const std::filesystem::path& path);

/// results/<gpu>/errors.json
std::filesystem::path errors_path(const std::filesystem::path& root,
                                  const std::string& device_name);
/// Replaces all rows of the problems that `measured` has in errors_path(); returns that path.
Result<std::filesystem::path> record_errors(const std::filesystem::path& root,
                                            const ErrorsRecord& measured);
/// Every results/*/errors.json, sorted.
std::vector<std::filesystem::path> recorded_errors(const std::filesystem::path& root);

/// One problem's rows by their share of the bounds, the bounds as a row between those within and
/// those outside.
Table error_table(const ErrorsRecord& record, const Problem& problem);
/// ops/TOLERANCES.md with every problem's tables between its markers.
Result<std::string> tolerances_page(const std::filesystem::path& root);

/// Rows of candidates that are no longer what was measured, and mutants and honest kernels that are
/// missing among the rows of their problem, as complaints.
Result<std::vector<std::string>> stale_errors(const std::filesystem::path& root);

}  // namespace rekernel

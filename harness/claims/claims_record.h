#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/claims/claims_file.h"
#include "harness/evaluation/evaluation.h"

namespace rekernel {

/// How far a claim's program came.
enum class ClaimOutcome {
  missing,        ///< there is no such program, or another one
  not_built,      ///< its compile command failed
  not_captured,   ///< its work cannot become a candidate
  not_evaluated,  ///< this machine could not judge it; it is tried again
  judged,
};
const char* to_string(ClaimOutcome outcome);

/// A reference's time beside the program's kernels.
struct ClaimReference {
  std::string id;
  std::string unavailable;  ///< why there is no time; empty if there is
  std::int64_t median_ns = 0;
  Percent percent;  ///< reference time ÷ the program's
};

/// What became of a claim.
struct ClaimRow {
  Claim claim;         ///< without its commands
  std::string answer;  ///< claim_digest() of what was asked: rows of other questions are made again
  ClaimOutcome outcome = ClaimOutcome::missing;
  std::string reason;  ///< one line, where it did not pass
  std::string status;  ///< of the verdict
  std::vector<std::string> badges;
  std::vector<std::string> libraries;  ///< whose kernels it launches
  std::string note;                    ///< of the capture: bytes taken from one call, and so on
  std::int64_t median_ns = 0, low_ns = 0, high_ns = 0;
  std::int64_t own_device_ns = 0;  ///< the program's own time of the same work, in its own process
  std::int64_t own_call_ns = 0;
  double tolerance_share = 0;  ///< the largest |err| ÷ tolerance
  double rms_error = 0;        ///< rms of the error ÷ rms of the truth
  std::vector<ClaimReference> references;
  std::string harness;  ///< digests of what judged it
  std::string device;   ///< on which it was judged
};

struct ClaimsRecord {
  ClaimsFile file;  ///< without its claims and commands
  std::vector<ClaimRow> rows;
};

/// What a claim and its source ask of this judge, as 16 digits.
std::string claim_digest(const Claim& claim, const std::string& judge);

/// Fills in what an evaluation found out.
void take_evaluation(const Evaluation& evaluation, ClaimRow& row);

boost::json::object to_json(const ClaimsRecord& record);
Result<ClaimsRecord> claims_record_from_json(const std::string& text, const std::string& where);
/// results/claims/<name>.json
std::filesystem::path claims_record_path(const std::filesystem::path& root,
                                         const std::string& name);
/// Every record below results/claims, by name; what cannot be read is told.
std::vector<ClaimsRecord> read_claims_records(const std::filesystem::path& root,
                                              std::vector<Error>& errors);

/// A claimed speedup beside the measured one.
struct ClaimComparison {
  ClaimedFigure claimed;
  std::string reference;            ///< by which the measured one was made; empty: none is there
  std::optional<Percent> measured;  ///< in percent: 100 is as fast
  /// Whether the program passed and the interval reaches what was claimed.
  bool holds = false;
};
std::vector<ClaimComparison> compare(const ClaimRow& row);

}  // namespace rekernel

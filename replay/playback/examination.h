#pragma once

#include <string>
#include <vector>

#include "replay/search/search.h"
#include "replay/trajectory/header.h"

namespace rekernel {

/// Looks whether recorded evaluations can be what they say: in themselves, beside the candidate
/// that they are of, and beside each other.
class EvaluationExaminer {
 public:
  /// `header` must outlive it.
  explicit EvaluationExaminer(const Header& header) : header_(header) {}

  void examine(const CandidateReport& report);
  /// A line for each contradiction: "evaluation r1.i2.b1: timing.median_ns: …".
  const std::vector<std::string>& found() const { return found_; }

 private:
  void note(const CandidateReport& report, const std::string& what);
  void examine_device(const CandidateReport& report, const Evaluation& evaluation);
  void examine_identity(const CandidateReport& report, const Evaluation& evaluation);

  const Header& header_;
  std::string device_;  ///< of the first evaluation that names one
  std::string device_of_;
  std::vector<std::string> found_;
};

}  // namespace rekernel

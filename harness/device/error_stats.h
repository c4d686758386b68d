#pragma once

#include <cstdint>

namespace rekernel {

/// Errors of one output against the float64 truth.
struct ErrorStats {
  double max_abs = 0;
  double rms = 0;
  double truth_rms = 0;
  double worst_tolerance_ratio = 0;  ///< max of |err| ÷ (absolute + relative·|truth|)
  double worst_strict_ratio = 0;     ///< the same with 1e-4 and 1e-4
  std::int64_t failing = 0;          ///< elements outside the tolerance, NaN included
  std::int64_t unwritten = 0;        ///< elements that still hold the poison
  std::int64_t first_failing = -1;   ///< flat index, −1 if none
  double first_value = 0;
  double first_truth = 0;
};

}  // namespace rekernel

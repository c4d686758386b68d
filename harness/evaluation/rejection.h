#pragma once

#include <string>

#include "harness/candidate/status.h"

namespace rekernel {

/// Why a candidate does not pass.
struct Rejection {
  Status status = Status::wrong_result;
  std::string message;
  /// Which check refused the values ("rms error"); empty where the status says it all.
  std::string check = {};
};

}  // namespace rekernel

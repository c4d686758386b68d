#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "harness/candidate/candidate.h"

namespace rekernel::testing {

/// A candidate that differs from others by its name alone.
inline Candidate named(const std::string& name) {
  Result<Candidate> candidate = parse_candidate(
      R"({"schema": 1, "problem": "softmax", "name": ")" + name +
          R"(", "idea": "an idea", "arch": "sm_90a", "origin": {"note": "written for a test"},
          "launches": [{"kernel": "k", "grid": [1], "block": [32], "args": ["x", "y"]}]})",
      "extern \"C\" __global__ void k(const float* x, float* y) {}  // " + name + "\n", name);
  if (!candidate) throw std::runtime_error(candidate.error().message);
  return std::move(*candidate);
}

}  // namespace rekernel::testing

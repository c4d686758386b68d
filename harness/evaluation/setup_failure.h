#pragma once

#include <stdexcept>
#include <utility>

#include "ops/result.h"

namespace rekernel {

/// A failure of the set-up, not of the candidate.
class SetupFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
T or_setup_failure(Result<T> result) {
  if (!result) throw SetupFailure(result.error().message);
  return std::move(*result);
}

}  // namespace rekernel

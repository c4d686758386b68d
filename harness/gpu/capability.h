#pragma once

#include <compare>

namespace rekernel {

struct ComputeCapability {
  int major = 0;
  int minor = 0;
  auto operator<=>(const ComputeCapability&) const = default;
};

}  // namespace rekernel

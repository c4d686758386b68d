#pragma once

namespace rekernel {

/// Copies and fills that the driver does itself have no kernel in a candidate's plan: `copy_bytes`
/// and `fill_bytes` of this source stand for them.
extern const char* const copy_kernels;

}  // namespace rekernel

#pragma once

#include <span>

namespace rekernel {

/// The system calls that a locked process may make with any arguments, by number, in no order.
std::span<const long> harmless_system_calls();

/// The highest number of a call that the list was made with. The C library falls back to older
/// calls where a newer one does not exist, and not where it is forbidden.
inline constexpr long newest_considered_call = 462;  // mseal, Linux 6.10

}  // namespace rekernel

#pragma once

#include "ops/result.h"

namespace rekernel {

inline constexpr int exit_good = 0;
inline constexpr int exit_verdict_failed = 1;
inline constexpr int exit_bad_input = 2;

/// Prints "rekernel: <message>" to standard error and returns exit_bad_input.
int bad_input(const Error& error);

/// The exit status once all was printed: exit_bad_input, with a line on standard error, if standard
/// output could not take it. Where nobody reads it any more, the program ends by SIGPIPE as others
/// do.
int after_output(int exit_status);

}  // namespace rekernel

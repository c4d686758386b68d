#pragma once

namespace rekernel::testing {

/// What a child of the isolation tests does: arguments[0] names it, the rest are its arguments. It
/// reports on the result pipe like any child. Returns the exit status.
int misbehave(char** arguments);

}  // namespace rekernel::testing

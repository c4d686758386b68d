#pragma once

#include "harness/terminal/page.h"

namespace rekernel {

/// What `rekernel replay` takes.
Page replay_page();

}  // namespace rekernel

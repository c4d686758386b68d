#pragma once

#include <string>

namespace rekernel {

/// Shows a text on standard output. On a terminal it goes through $PAGER, or through less where
/// that is installed; elsewhere, and where no pager runs, it is printed as it is.
void show_in_pager(const std::string& text);

}  // namespace rekernel

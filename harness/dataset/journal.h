#pragma once

#include <filesystem>
#include <string_view>

#include "ops/result.h"

namespace rekernel {

/// Appends a line to a file, which is made with its folder if there is none, and waits until it is
/// on the disk. A last line that a kill tore is cut off first. Not for two writers at a time.
Result<Ok> append_line(const std::filesystem::path& path, std::string_view line);

}  // namespace rekernel

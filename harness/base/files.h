#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ops/result.h"

namespace rekernel {

/// The content of a regular file of at most `max_bytes`.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes = 64u << 20);

/// Writes to a temporary file beside `path`, then renames: readers see the old content or the new.
Result<Ok> write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Lower-case hexadecimal SHA-256.
std::string sha256_hex(std::string_view bytes);

/// Appends a field with its length before it: two different lists of fields never give the same
/// bytes.
void append_field(std::string& bytes, std::string_view field);
/// Takes one field from the front; nothing, and `bytes` unchanged, if it is not there in whole.
std::optional<std::string> take_field(std::string_view& bytes);

/// Where compiled kernels and library choices are remembered: $REKERNEL_CACHE, else
/// $XDG_CACHE_HOME/rekernel, else ~/.cache/rekernel, else a folder in the temporary directory.
std::filesystem::path cache_directory();

}  // namespace rekernel

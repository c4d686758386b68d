#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "ops/result.h"

namespace rekernel {

/// The content of a regular file of at most `max_bytes`.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes = 64u << 20);

/// Writes to a temporary file beside `path`, then renames: readers see the old content or the new.
Result<Ok> write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// 16 hexadecimal digits that nobody else has: for names on file systems that machines share, where
/// a process's number is another's as well.
std::string random_digits();

/// Whether everything could be written; errno says why not.
[[nodiscard]] bool write_all(int descriptor, std::string_view bytes);

/// What could not be done with a file, and the reason that errno gives.
Error system_error(const std::filesystem::path& path, const std::string& what);

/// Lower-case hexadecimal SHA-256.
std::string sha256_hex(std::string_view bytes);

/// SHA-256 of what comes in pieces. A copy goes on from where the original was.
class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256& other);
  Sha256& operator=(const Sha256& other);
  ~Sha256();

  void update(std::string_view bytes);
  /// Lower-case hexadecimal, of everything so far.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Where compiled kernels and library choices are remembered: $REKERNEL_CACHE, else
/// $XDG_CACHE_HOME/rekernel, else ~/.cache/rekernel, else a folder in the temporary directory.
std::filesystem::path cache_directory();

}  // namespace rekernel

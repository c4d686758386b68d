#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

inline constexpr std::size_t longest_path = 1000;  ///< of those that are told of

/// A file that a change touches.
struct ChangedFile {
  std::string path;      ///< as one_line() has it
  char kind = 'M';       ///< A: added, D: deleted, M: modified, T: of another type
  std::string old_mode;  ///< as git names them: "100644", "120000" for a link
  std::string new_mode;
  bool odd_name = false;  ///< the path is another: with control characters, not UTF-8, or too long
};

/// A checkout, through the program git.
class Git {
 public:
  explicit Git(std::filesystem::path root) : root_(std::move(root)) {}

  /// What git prints; its message where it fails. `before`: what stands before its name.
  Result<std::string> run(const std::vector<std::string>& words,
                          const std::vector<std::string>& before = {}) const;

  /// The last commit that HEAD has in common with `base`. The error says what is wrong with the
  /// name or with the clone, and what to do.
  Result<std::string> merge_base(const std::string& base) const;
  /// All that HEAD changes of a commit, sorted.
  Result<std::vector<ChangedFile>> changes_since(const std::string& commit) const;
  /// What differs between the work tree and HEAD: changed, staged and untracked files.
  Result<std::vector<std::string>> uncommitted() const;
  /// HEAD's files, in a folder that is empty; without links, whose targets are the machine's.
  /// Nothing of the repository changes.
  Result<Ok> copy_of_head(const std::filesystem::path& folder) const;
  /// A file's content in a commit; nothing if it is not there.
  std::optional<std::string> content(const std::string& commit, const std::string& path) const;

 private:
  std::filesystem::path root_;
};

}  // namespace rekernel

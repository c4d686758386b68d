#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/file_descriptor.h"
#include "ops/result.h"

namespace rekernel {

/// A folder that vanishes with its owner, with whatever is in it then. What a generator makes is
/// made in one, and put in place once it is whole.
class StagingFolder {
 public:
  /// In the same folder as `folder`, so that it can be put in its place in one step.
  static Result<StagingFolder> beside(const std::filesystem::path& folder);
  StagingFolder(StagingFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;
  StagingFolder& operator=(StagingFolder&&) = delete;
  ~StagingFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit StagingFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// Puts the folder `made` in place of `folder`, if there is one: in one step where the file system
/// knows it; else in two, and back again if the second fails. What stood there is at `made` then.
Result<Ok> put_in_place(const std::filesystem::path& made, const std::filesystem::path& folder);

/// The path without a "/" at its end, and with links followed: what is replaced is the folder.
std::filesystem::path resolved_folder(const std::filesystem::path& folder);

/// A program that makes files of what it reads from its standard input. It shares the other streams
/// with this one, and says on standard error what went wrong. Ctrl-C is for it: it ends, and this
/// program cleans up.
class Generator {
 public:
  /// `words`: the program's path, and its arguments.
  static Result<Generator> start(std::vector<std::string> words);
  Generator(Generator&&) noexcept;
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  Generator& operator=(Generator&&) = delete;
  /// Waits for its end, as finish() does.
  ~Generator();

  /// False once it reads no more.
  [[nodiscard]] bool write(std::string_view bytes);
  /// Closes its input and waits for its end: its exit status.
  Result<int> finish();

 private:
  class IgnoredSignals;

  Generator();
  std::unique_ptr<IgnoredSignals> ignored_;
  FileDescriptor input_;
  pid_t child_ = 0;
};

}  // namespace rekernel

#include "harness/process/hidden_files.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "harness/base/file_descriptor.h"

namespace rekernel {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t opening = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;

Error landlock_error() { return Error{std::string("landlock: ") + std::strerror(errno)}; }

/// Landlock knows what is allowed, and nothing else is: so all beside the hidden files is.
class Ruleset {
 public:
  static Result<Ruleset> create() {
    const landlock_ruleset_attr handled{.handled_access_fs = opening};
    FileDescriptor ruleset(
        static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
    if (!ruleset.is_open()) return landlock_error();
    return Ruleset(std::move(ruleset));
  }

  /// Everything in a folder but what is hidden.
  Result<Ok> allow_inside(const fs::path& folder, const std::vector<std::string>& hidden) {
    std::error_code none;
    for (fs::directory_iterator it(folder, none), end; !none && it != end; it.increment(none)) {
      const std::string path = it->path().string();
      // What a link leads to is allowed where it lies.
      if (it->is_symlink(none)) continue;
      if (std::find(hidden.begin(), hidden.end(), path) != hidden.end()) continue;
      const bool leads_to_hidden =
          std::any_of(hidden.begin(), hidden.end(),
                      [&](const std::string& one) { return one.starts_with(path + "/"); });
      const Result<Ok> done = leads_to_hidden ? allow_inside(path, hidden) : allow(path);
      if (!done) return done.error();
    }
    return Ok{};
  }

  Result<Ok> enforce() const {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::syscall(SYS_landlock_restrict_self, ruleset_.get(), 0) != 0) {
      return landlock_error();
    }
    return Ok{};
  }

 private:
  explicit Ruleset(FileDescriptor ruleset) : ruleset_(std::move(ruleset)) {}

  Result<Ok> allow(const std::string& path) {
    const FileDescriptor place(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!place.is_open()) return Ok{};  // gone meanwhile, or not to be reached anyway
    const landlock_path_beneath_attr rule{.allowed_access = opening, .parent_fd = place.get()};
    if (::syscall(SYS_landlock_add_rule, ruleset_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) !=
        0) {
      return landlock_error();
    }
    return Ok{};
  }

  FileDescriptor ruleset_;
};

}  // namespace

Result<Ok> hide_files(const std::vector<std::string>& paths) {
  if (paths.empty()) return Ok{};
  Result<Ruleset> ruleset = Ruleset::create();
  if (!ruleset) return ruleset.error();
  const Result<Ok> allowed = ruleset->allow_inside("/", paths);
  if (!allowed) return allowed.error();
  return ruleset->enforce();
}

}  // namespace rekernel

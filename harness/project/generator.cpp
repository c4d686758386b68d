#include "harness/project/generator.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "harness/base/files.h"

extern char** environ;

namespace rekernel {

namespace fs = std::filesystem;

namespace {

std::string last_system_error() { return std::strerror(errno); }

/// Starts the program with our streams, but for its standard input.
Result<pid_t> start_child(std::vector<std::string>& words, int standard_input) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t ours;
  ::sigemptyset(&ours);
  ::sigaddset(&ours, SIGINT);
  ::sigaddset(&ours, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &ours);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, standard_input, STDIN_FILENO);
  pid_t child = 0;
  const int failure =
      ::posix_spawn(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failure != 0) return Error{words[0] + ": " + std::strerror(failure)};
  return child;
}

}  // namespace

Result<StagingFolder> StagingFolder::beside(const fs::path& folder) {
  std::string pattern =
      (folder.parent_path() / ("." + folder.filename().string() + ".new-XXXXXX")).string();
  if (!::mkdtemp(pattern.data())) {
    return Error{folder.parent_path().string() + ": " + last_system_error()};
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::chmod(pattern.c_str(), 0777 & ~mask);
  return StagingFolder(pattern);
}

StagingFolder::~StagingFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<Ok> put_in_place(const fs::path& made, const fs::path& folder) {
  const auto failed = [&] { return Error{folder.string() + ": " + last_system_error()}; };
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    return Ok{};
  }
  if (errno == ENOENT) {
    if (std::rename(made.c_str(), folder.c_str()) == 0) return Ok{};
    return failed();
  }
  if (errno != EINVAL && errno != ENOSYS) return failed();
  const std::string aside = made.string() + ".old";
  if (std::rename(folder.c_str(), aside.c_str()) != 0) return failed();
  if (std::rename(made.c_str(), folder.c_str()) != 0) {
    const Error error = failed();
    std::rename(aside.c_str(), folder.c_str());
    return error;
  }
  std::error_code ignored;
  fs::remove_all(aside, ignored);
  return Ok{};
}

fs::path resolved_folder(const fs::path& folder) {
  fs::path path = fs::weakly_canonical(fs::absolute(folder));
  return path.has_filename() ? path : path.parent_path();
}

/// Ctrl-C is for the generator, and so is a pipe that it no longer reads.
class Generator::IgnoredSignals {
 public:
  IgnoredSignals()
      : interrupt_(std::signal(SIGINT, SIG_IGN)), pipe_(std::signal(SIGPIPE, SIG_IGN)) {}
  IgnoredSignals(const IgnoredSignals&) = delete;
  IgnoredSignals& operator=(const IgnoredSignals&) = delete;
  ~IgnoredSignals() {
    std::signal(SIGINT, interrupt_);
    std::signal(SIGPIPE, pipe_);
  }

 private:
  void (*interrupt_)(int);
  void (*pipe_)(int);
};

Generator::Generator() : ignored_(std::make_unique<IgnoredSignals>()) {}

Generator::Generator(Generator&& other) noexcept
    : ignored_(std::move(other.ignored_)),
      input_(std::move(other.input_)),
      child_(std::exchange(other.child_, 0)) {}

Generator::~Generator() {
  if (child_ != 0) (void)finish();
}

Result<Generator> Generator::start(std::vector<std::string> words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{"pipe: " + last_system_error()};
  const FileDescriptor output(ends[0]);
  FileDescriptor input(ends[1]);
  Generator generator;
  const Result<pid_t> child = start_child(words, output.get());
  if (!child) return child.error();
  generator.child_ = *child;
  generator.input_ = std::move(input);
  return generator;
}

bool Generator::write(std::string_view bytes) { return write_all(input_.get(), bytes); }

Result<int> Generator::finish() {
  input_.close();
  const pid_t child = std::exchange(child_, 0);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error{"waiting for the generator: " + last_system_error()};
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace rekernel

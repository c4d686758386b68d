#include "harness/report/html.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <set>
#include <string>
#include <vector>

#include "harness/base/file_descriptor.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/process/isolate.h"

extern char** environ;

namespace rekernel {

namespace fs = std::filesystem;

namespace {

/// Lies in every report and names its files.
constexpr const char* report_marker = "report.json";

std::string last_system_error() { return std::strerror(errno); }

/// The files that a report says it consists of, from its folder; nothing if it is no report.
Result<std::set<std::string>> files_of_report(const fs::path& folder) {
  const Result<boost::json::value> json = read_json_file(folder / report_marker);
  if (!json) return json.error();
  JsonReader reader(report_marker, *json);
  reader.required("rekernel_report").integer(1, 1);
  const std::vector<std::string> files = reader.required("files").strings();
  if (auto error = reader.error()) return *error;
  std::set<std::string> names(files.begin(), files.end());
  names.insert(report_marker);
  return names;
}

/// A folder that vanishes with its owner, with whatever is in it then.
class StagingFolder {
 public:
  static Result<StagingFolder> beside(const fs::path& folder) {
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
  StagingFolder(StagingFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;
  StagingFolder& operator=(StagingFolder&&) = delete;
  ~StagingFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit StagingFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

/// Ctrl-C is for the generator, which ends; then we clean up. So is a pipe that it no longer reads.
class IgnoredSignals {
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

/// Starts the generator with our streams, but for its standard input.
Result<pid_t> start_generator(const fs::path& folder, const std::set<std::string>& pictures,
                              int standard_input) {
  std::vector<std::string> words{
      "/usr/bin/env", "bash", REKERNEL_SOURCE_DIR "/harness/report_html/make.sh", folder.string()};
  words.insert(words.end(), pictures.begin(), pictures.end());
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

/// The exit status of the generator, which reads the data.
Result<int> run_generator(const boost::json::object& data, const fs::path& folder,
                          const std::set<std::string>& pictures = {}) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{"pipe: " + last_system_error()};
  FileDescriptor output(ends[0]);
  FileDescriptor input(ends[1]);
  const IgnoredSignals ignored;
  const Result<pid_t> child = start_generator(folder, pictures, output.get());
  if (!child) return child.error();
  output.close();
  // One that has ended early says why itself.
  (void)write_all(input.get(), boost::json::serialize(data));
  input.close();
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0) {
    if (errno != EINTR) return Error{"waiting for the generator: " + last_system_error()};
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// One step where the file system knows it; else two, and back again if the second fails.
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

/// Without a "/" at its end, and with links followed: what is replaced is the folder itself.
fs::path resolved(const fs::path& folder) {
  fs::path path = fs::weakly_canonical(fs::absolute(folder));
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

Result<Ok> check_report_folder(const fs::path& named) {
  const fs::path folder = resolved(named);
  const std::string expected = "; expected a report of ours, an empty folder, or none";
  if (!fs::exists(folder)) return Ok{};
  if (!fs::is_directory(folder)) return Error{folder.string() + ": is no folder" + expected};
  if (fs::is_empty(folder)) return Ok{};
  if (!fs::exists(folder / report_marker)) {
    return Error{folder.string() + ": is no report" + expected};
  }
  const Result<std::set<std::string>> files = files_of_report(folder);
  if (!files)
    return Error{folder.string() + ": is no report (" + files.error().message + ")" + expected};
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) continue;
    const std::string name = entry.path().lexically_relative(folder).string();
    if (!files->contains(name)) {
      return Error{folder.string() + ": holds " + name + ", which is not of the report" + expected};
    }
  }
  return Ok{};
}

Result<Ok> write_html_report(const boost::json::object& data, const fs::path& named) {
  const fs::path folder = resolved(named);
  if (Result<Ok> good = check_report_folder(folder); !good) return good;
  std::error_code status;
  fs::create_directories(folder.parent_path(), status);
  if (status) return Error{folder.parent_path().string() + ": " + status.message()};
  const Result<StagingFolder> staging = StagingFolder::beside(folder);
  if (!staging) return staging.error();
  const Result<int> ended = run_generator(data, staging->path());
  if (!ended) return ended.error();
  if (*ended != 0) {
    return Error{"the pages could not be made (above); " + folder.string() + " is as it was"};
  }
  return put_in_place(staging->path(), folder);
}

Result<Ok> write_pictures(const boost::json::object& data, const fs::path& folder,
                          const std::set<std::string>& names) {
  const Result<int> ended = run_generator(data, folder, names);
  if (!ended) return ended.error();
  if (*ended != 0) return Error{"the pictures could not be made (above)"};
  return Ok{};
}

}  // namespace rekernel

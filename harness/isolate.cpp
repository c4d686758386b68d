#include "harness/isolate.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

namespace rekernel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t largest_result = 64u << 20;
constexpr std::size_t kept_error_bytes = 4096;
constexpr std::size_t last_words_length = 300;

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileDescriptor() { close(); }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

std::optional<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

struct Child {
  pid_t id = -1;
  FileDescriptor input;
  FileDescriptor result;
  FileDescriptor errors;
};

/// Between fork and exec only async-signal-safe calls.
[[noreturn]] void become(char* const* arguments, int input, int result, int errors, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // Move the pipes out of the way of the numbers that they will take, so that no dup2 below can
  // overwrite one that is still needed.
  input = ::fcntl(input, F_DUPFD, 10);
  result = ::fcntl(result, F_DUPFD, 10);
  errors = ::fcntl(errors, F_DUPFD, 10);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(input, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::dup2(result, result_descriptor);
  ::close_range(result_descriptor + 1, ~0u, 0);
  ::execv(arguments[0], arguments);
  ::_exit(127);
}

Result<Child> start(const std::vector<std::string>& arguments) {
  std::optional<Pipe> input = make_pipe();
  std::optional<Pipe> result = make_pipe();
  std::optional<Pipe> errors = make_pipe();
  if (!input || !result || !errors) {
    return Error{std::string("cannot make a pipe: ") + std::strerror(errno)};
  }
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t id = ::fork();
  if (id < 0) return Error{std::string("cannot start a process: ") + std::strerror(errno)};
  if (id == 0) {
    become(pointers.data(), input->read.get(), result->write.get(), errors->write.get(), parent);
  }
  ::setpgid(id, id);  // also here, so that a kill cannot come before the child's own call
  ::fcntl(input->write.get(), F_SETFL, O_NONBLOCK);
  return Child{id, std::move(input->write), std::move(result->read), std::move(errors->read)};
}

/// Reads what is there. False at the end of the stream.
bool drain(int descriptor, std::string& into) {
  std::array<char, 65536> chunk;
  const ssize_t count = ::read(descriptor, chunk.data(), chunk.size());
  if (count > 0) into.append(chunk.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

/// The conversation with a running child, one poll at a time.
class Supervision {
 public:
  Supervision(Child child, std::string_view input, std::chrono::milliseconds startup_deadline,
              std::chrono::milliseconds run_deadline)
      : child_(std::move(child)),
        input_(input),
        run_deadline_(run_deadline),
        deadline_(Clock::now() + startup_deadline) {}

  ChildOutcome run() {
    while (child_.result.is_open()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
      if (left.count() <= 0) {
        late_ = true;
        break;
      }
      exchange(static_cast<int>(std::min<std::int64_t>(left.count() + 1, 1000)));
    }
    return finish();
  }

 private:
  void exchange(int timeout_ms) {
    std::array<pollfd, 3> watched{{{child_.result.get(), POLLIN, 0},
                                   {child_.errors.get(), POLLIN, 0},
                                   {child_.input.get(), POLLOUT, 0}}};
    if (::poll(watched.data(), watched.size(), timeout_ms) <= 0) return;
    if (watched[0].revents) read_result();
    if (watched[1].revents) read_errors();
    if (watched[2].revents) write_input();
  }

  void read_result() {
    if (!drain(child_.result.get(), result_) || result_.size() > largest_result) {
      child_.result.close();
    }
    if (!started_ && result_.find('\n') != std::string::npos) {
      started_ = true;
      deadline_ = Clock::now() + run_deadline_;
    }
  }

  void read_errors() {
    if (!drain(child_.errors.get(), errors_)) child_.errors.close();
    if (errors_.size() > 2 * kept_error_bytes) {
      errors_.erase(0, errors_.size() - kept_error_bytes);
    }
  }

  void write_input() {
    const ssize_t count = ::write(child_.input.get(), input_.data(), input_.size());
    if (count > 0) input_.remove_prefix(static_cast<std::size_t>(count));
    const bool broken = count < 0 && errno != EAGAIN && errno != EINTR;
    if (input_.empty() || broken) child_.input.close();
  }

  ChildOutcome finish() {
    int status = 0;
    if (late_ || !exits_by_itself(status)) {
      ::kill(-child_.id, SIGKILL);
      ::waitpid(child_.id, &status, 0);
    }
    ChildOutcome outcome;
    if (late_) {
      outcome.end =
          started_ ? ChildOutcome::End::run_deadline : ChildOutcome::End::startup_deadline;
    } else if (WIFSIGNALED(status)) {
      outcome.end = ChildOutcome::End::signalled;
      outcome.code = WTERMSIG(status);
    } else {
      outcome.code = WEXITSTATUS(status);
    }
    if (const std::size_t line = result_.find('\n'); line != std::string::npos) {
      outcome.result = result_.substr(line + 1);
    }
    outcome.last_words = last_line();
    return outcome;
  }

  /// A child that closed its result pipe has little left to do; CUDA's own exit can still hang.
  bool exits_by_itself(int& status) {
    const Clock::time_point patience = Clock::now() + std::chrono::seconds(10);
    while (Clock::now() < patience) {
      if (::waitpid(child_.id, &status, WNOHANG) == child_.id) {
        ::kill(-child_.id, SIGKILL);  // anything that it started
        return true;
      }
      if (child_.errors.is_open()) {
        pollfd watched{child_.errors.get(), POLLIN, 0};
        if (::poll(&watched, 1, 1) > 0) read_errors();
      } else {
        ::usleep(1000);
      }
    }
    return false;
  }

  std::string last_line() const {
    std::string text = errors_;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    if (const std::size_t line = text.rfind('\n'); line != std::string::npos) {
      text.erase(0, line + 1);
    }
    return text.substr(0, last_words_length);
  }

  Child child_;
  std::string_view input_;
  std::chrono::milliseconds run_deadline_;
  Clock::time_point deadline_;
  std::string result_;
  std::string errors_;
  bool started_ = false;
  bool late_ = false;
};

}  // namespace

Result<ChildOutcome> run_child(const std::vector<std::string>& arguments, std::string_view input,
                               std::chrono::milliseconds startup_deadline,
                               std::chrono::milliseconds run_deadline) {
  ::signal(SIGPIPE, SIG_IGN);  // a child that dies early must not take us along
  Result<Child> child = start(arguments);
  if (!child) return child.error();
  return Supervision(std::move(*child), input, startup_deadline, run_deadline).run();
}

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw std::runtime_error(std::string("result pipe: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void report_started(int descriptor) { write_all(descriptor, "started\n"); }

std::string own_executable() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace rekernel

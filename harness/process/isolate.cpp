#include "harness/process/isolate.h"

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
#include <exception>
#include <filesystem>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "harness/base/file_descriptor.h"
#include "harness/base/files.h"
#include "harness/base/utf8.h"
#include "harness/process/process_tree.h"
#include "harness/process/system_calls.h"

extern char** environ;

namespace rekernel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kept_error_bytes = 4096;
constexpr std::size_t last_words_length = 300;
constexpr std::size_t most_inherited = 16;
/// A killed process still has to leave the GPU, and the driver may have to reset a channel.
constexpr std::chrono::seconds death_deadline{30};

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

void limit(int resource, std::int64_t soft, std::int64_t hard) {
  rlimit present{};
  ::getrlimit(static_cast<decltype(RLIMIT_CORE)>(resource), &present);
  // What is stricter already stays so.
  const rlim_t ceiling = std::min(static_cast<rlim_t>(hard), present.rlim_max);
  const rlimit wanted{std::min(static_cast<rlim_t>(soft), ceiling), ceiling};
  ::setrlimit(static_cast<decltype(RLIMIT_CORE)>(resource), &wanted);
}

void apply(const ChildLimits& limits) {
  limit(RLIMIT_CORE, 0, 0);
  // The first limit's signal names the reason; the second kills what ignores it.
  limit(RLIMIT_CPU, limits.processor_time.count(), limits.processor_time.count() + 1);
  limit(RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes);
  limit(RLIMIT_NOFILE, limits.open_files, limits.open_files);
#ifndef __SANITIZE_ADDRESS__  // whose shadow memory takes terabytes of addresses
  if (limits.address_space_bytes) {
    limit(RLIMIT_AS, *limits.address_space_bytes, *limits.address_space_bytes);
  }
#endif
  // A library that finds its file too large gets an error, as on a full disk, and goes on.
  ::signal(SIGXFSZ, SIG_IGN);
}

struct Plumbing {
  int input;
  int result;
  int errors;
  std::array<int, most_inherited> inherited;
  int inherited_count;
};

/// Between fork and exec only async-signal-safe calls.
[[noreturn]] void become(char* const* arguments, char* const* environment, Plumbing pipes,
                         const ChildLimits& limits, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  // Move everything out of the way of the numbers that it will take, so that no dup2 below can
  // overwrite one that is still needed.
  const auto aside = [](int descriptor) {
    return ::fcntl(descriptor, F_DUPFD, first_inherited_descriptor + int{most_inherited});
  };
  pipes.input = aside(pipes.input);
  pipes.result = aside(pipes.result);
  pipes.errors = aside(pipes.errors);
  for (int i = 0; i < pipes.inherited_count; ++i) pipes.inherited[i] = aside(pipes.inherited[i]);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(pipes.input, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(pipes.errors, STDERR_FILENO);
  ::dup2(pipes.result, result_descriptor);
  int behind = first_inherited_descriptor;
  for (int i = 0; i < pipes.inherited_count; ++i) ::dup2(pipes.inherited[i], behind++);
  ::close_range(static_cast<unsigned>(behind), ~0u, 0);
  apply(limits);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

/// As exec takes them.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<Child> start(const ChildCommand& command) {
  std::optional<Pipe> input = make_pipe();
  std::optional<Pipe> result = make_pipe();
  std::optional<Pipe> errors = make_pipe();
  if (!input || !result || !errors) {
    return Error{std::string("cannot make a pipe: ") + std::strerror(errno)};
  }
  if (command.inherited.size() > most_inherited) return Error{"too many descriptors to inherit"};
  const std::vector<char*> arguments = pointers_to(command.arguments);
  std::vector<char*> variables;
  if (command.environment) variables = pointers_to(*command.environment);
  Plumbing pipes{input->read.get(), result->write.get(), errors->write.get(), {}, 0};
  for (const int descriptor : command.inherited) {
    pipes.inherited[static_cast<std::size_t>(pipes.inherited_count++)] = descriptor;
  }
  const pid_t parent = ::getpid();
  const pid_t id = ::fork();
  if (id < 0) return Error{std::string("cannot start a process: ") + std::strerror(errno)};
  if (id == 0) {
    become(arguments.data(), command.environment ? variables.data() : environ, pipes,
           command.limits, parent);
  }
  ::setpgid(id, id);  // also here, so that a kill cannot come before the child's own call
  return Child{id, std::move(input->write), std::move(result->read), std::move(errors->read)};
}

/// Reads what is there. False at the end of the stream.
bool drain(int descriptor, std::string& into) {
  std::array<char, 65536> chunk;
  const ssize_t count = ::read(descriptor, chunk.data(), chunk.size());
  if (count > 0) into.append(chunk.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

/// Writes a child's input. A child that no longer reads is no error of ours.
void feed(FileDescriptor pipe, const ChildCommand& command) {
  // The child says what it made of an input that ended early.
  (void)write_all(pipe.get(), command.input);
}

/// The conversation with a running child, one poll at a time.
class Supervision {
 public:
  Supervision(Child child, const ChildCommand& command)
      : child_(std::move(child)), command_(command), deadline_(Clock::now() + command.deadline) {}

  ChildOutcome run() {
    while (child_.result.is_open() && !too_long_ && !stopped_) {
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
                                   {command_.stop, POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), timeout_ms) <= 0) return;
    if (watched[0].revents) read_result();
    if (watched[1].revents) read_errors();
    if (watched[2].revents) stopped_ = true;
  }

  void read_result() {
    if (!drain(child_.result.get(), result_)) child_.result.close();
    too_long_ = result_.size() > largest_result;
  }

  void read_errors() {
    const std::size_t before = errors_.size();
    if (!drain(child_.errors.get(), errors_)) child_.errors.close();
    if (command_.tells_refused_calls) repeat_refused_calls(before);
    if (errors_.size() > 2 * kept_error_bytes) {
      errors_.erase(0, errors_.size() - kept_error_bytes);
    }
  }

  /// Repeats the lines on refused calls after the first `before` bytes: such lines come whole.
  void repeat_refused_calls(std::size_t before) const {
    std::istringstream lines(errors_.substr(before));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(refused_call_mark)) continue;
      (void)write_all(STDERR_FILENO, one_line(line, last_words_length) + "\n");
    }
  }

  ChildOutcome finish() {
    int status = 0;
    const bool killed = late_ || too_long_ || stopped_ || !exits_by_itself(status);
    if (killed) status = kill_process_tree(child_.id, death_deadline);
    ChildOutcome outcome;
    if (stopped_) {
      outcome.end = ChildOutcome::End::stopped;
    } else if (too_long_) {
      outcome.end = ChildOutcome::End::result_too_long;
    } else if (late_) {
      outcome.end = ChildOutcome::End::deadline;
    } else if (WIFSIGNALED(status)) {
      outcome.end = ChildOutcome::End::signalled;
      outcome.code = WTERMSIG(status);
    } else {
      outcome.code = WEXITSTATUS(status);
    }
    outcome.result = std::move(result_);
    outcome.last_words = last_line();
    return outcome;
  }

  /// A child that closed its result pipe has little left to do.
  bool exits_by_itself(int& status) {
    const Clock::time_point patience = Clock::now() + command_.exit_deadline;
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
    return one_line(text, last_words_length);
  }

  Child child_;
  const ChildCommand& command_;
  Clock::time_point deadline_;
  std::string result_;
  std::string errors_;
  bool late_ = false;
  bool too_long_ = false;
  bool stopped_ = false;
};

}  // namespace

std::string how_it_ended(const ChildOutcome& outcome) {
  switch (outcome.end) {
    case ChildOutcome::End::signalled:
      return std::string("died of ") + ::strsignal(outcome.code);
    case ChildOutcome::End::exited:
      return "ended with status " + std::to_string(outcome.code);
    case ChildOutcome::End::deadline:
      return "did not end by its deadline";
    case ChildOutcome::End::result_too_long:
      return "printed without end";
    case ChildOutcome::End::stopped:
      break;
  }
  return "was stopped";
}

Result<ChildOutcome> run_child(const ChildCommand& command) {
  ::signal(SIGPIPE, SIG_IGN);  // a child that dies early must not take us along
  Result<Child> child = start(command);
  for (const int descriptor : command.inherited) ::close(descriptor);
  if (!child) return child.error();
  const std::jthread feeder(feed, std::move(child->input), std::cref(command));
  return Supervision(std::move(*child), command).run();
}

std::string read_all(int descriptor) {
  std::string text;
  while (drain(descriptor, text)) {
  }
  return text;
}

std::string own_executable() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace rekernel

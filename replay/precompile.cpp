#include "replay/precompile.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "harness/compile.h"
#include "harness/isolate.h"
#include "ops/catalog.h"

namespace rekernel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t max_message_bytes = 16384;
constexpr char accepted = '+';
constexpr char rejected = '-';
constexpr char bad_plan = 'p';
constexpr char no_compiler = '?';

/// The child's word on one candidate: one of the characters above, then the message.
std::string compile_in_child(const Candidate& candidate, const std::string& target) {
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return {no_compiler};
  const Result<CompiledProgram> compiled = compiler->compile(
      candidate.program, problem_header(*find_problem(candidate.problem)), target);
  if (!compiled) return rejected + compiled.error().message.substr(0, max_message_bytes);
  const Result<Ok> launches = check_launches(candidate.program, *compiled, candidate.name);
  return launches ? std::string{accepted} : bad_plan + launches.error().message;
}

struct Child {
  std::size_t index = 0;
  pid_t process = 0;
  int pipe = -1;
  Clock::time_point deadline;
  std::string word;
};

Child start(std::size_t index, const Candidate& candidate, const std::string& target,
            Clock::time_point deadline) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error(std::string("pipe2: ") + std::strerror(errno));
  }
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  }
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    try {
      write_all(ends[1], compile_in_child(candidate, target));
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  return {index, process, ends[0], deadline, {}};
}

/// Reads what is there; false once the child has closed its end.
bool read_word(Child& child) {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(child.pipe, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  child.word.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

int wait_for(const Child& child) {
  ::close(child.pipe);
  int status = 0;
  while (::waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::optional<CompileVerdict> verdict_of(const Child& child, int status) {
  if (child.word.empty() || status != 0) {
    return CompileVerdict{Status::crashed,
                          WIFSIGNALED(status)
                              ? std::string("the compiler died of ") + ::strsignal(WTERMSIG(status))
                              : "the compiler gave no verdict"};
  }
  switch (child.word.front()) {
    case rejected:
      return CompileVerdict{Status::compile_failed, child.word.substr(1)};
    case bad_plan:
      return CompileVerdict{Status::invalid_plan, child.word.substr(1)};
    default:
      return std::nullopt;
  }
}

int milliseconds_left(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 1000));
}

}  // namespace

std::vector<std::optional<CompileVerdict>> precompile(std::span<const Candidate* const> candidates,
                                                      const std::string& target, unsigned workers,
                                                      std::chrono::seconds deadline) {
  std::vector<std::optional<CompileVerdict>> verdicts(candidates.size());
  std::vector<Child> children;
  std::size_t next = 0;
  while (next < candidates.size() || !children.empty()) {
    while (next < candidates.size() && children.size() < std::max(1u, workers)) {
      children.push_back(start(next, *candidates[next], target, Clock::now() + deadline));
      ++next;
    }
    std::vector<pollfd> waits;
    int patience = 1000;
    for (const Child& child : children) {
      waits.push_back({child.pipe, POLLIN, 0});
      patience = std::min(patience, milliseconds_left(child.deadline));
    }
    ::poll(waits.data(), waits.size(), patience);
    for (std::size_t i = children.size(); i-- > 0;) {
      Child& child = children[i];
      const bool ended = waits[i].revents != 0 && !read_word(child);
      const bool late = !ended && Clock::now() >= child.deadline;
      if (!ended && !late) continue;
      if (late) ::kill(child.process, SIGKILL);
      const int status = wait_for(child);
      verdicts[child.index] =
          late ? CompileVerdict{Status::timed_out,
                                "not compiled within " + std::to_string(deadline.count()) + " s"}
               : verdict_of(child, status);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return verdicts;
}

}  // namespace rekernel

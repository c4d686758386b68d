#include "harness/terminal/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <string_view>

extern char** environ;

namespace rekernel {

namespace {

/// Colours as they are, no pager for what fits the screen, and the text stays on it. LESS of the
/// environment overrides it.
constexpr const char* less_command = "LESS=${LESS-FRX} exec less -R";

/// What the shell says of a program that is not there.
constexpr int not_found = 127;

std::string pager_command() {
  const char* const chosen = ::getenv("PAGER");
  if (!chosen || *chosen == '\0') return less_command;
  return std::string("LESS=${LESS-FRX} ") + chosen;
}

/// Signals of the terminal are the pager's while it runs.
class IgnoredSignals {
 public:
  IgnoredSignals() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGINT, &ignore, &interrupt_);
    ::sigaction(SIGQUIT, &ignore, &quit_);
    ::sigaction(SIGPIPE, &ignore, &pipe_);
  }
  IgnoredSignals(const IgnoredSignals&) = delete;
  IgnoredSignals& operator=(const IgnoredSignals&) = delete;
  ~IgnoredSignals() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGQUIT, &quit_, nullptr);
    ::sigaction(SIGPIPE, &pipe_, nullptr);
  }

 private:
  struct sigaction interrupt_ {
  }, quit_{}, pipe_{};
};

/// Starts `sh -c command` with this standard input; -1 where that fails.
pid_t start(const std::string& command, int input) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (const int number : {SIGINT, SIGQUIT, SIGPIPE}) ::sigaddset(&defaults, number);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::string shell = "sh", option = "-c", line = command;
  char* const words[] = {shell.data(), option.data(), line.data(), nullptr};
  pid_t child = -1;
  if (::posix_spawn(&child, "/bin/sh", &actions, &attributes, words, environ) != 0) child = -1;
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return child;
}

/// Until all is written, or the reader left.
void write_all(int output, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(output, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Whether a pager showed the text.
bool paged(const std::string& text) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const IgnoredSignals ignored;
  const pid_t child = start(pager_command(), ends[0]);
  ::close(ends[0]);
  if (child > 0) write_all(ends[1], text);
  ::close(ends[1]);
  if (child <= 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return !(WIFEXITED(status) && WEXITSTATUS(status) == not_found);
}

}  // namespace

void show_in_pager(const std::string& text) {
  std::cout << std::flush;
  if (::isatty(STDOUT_FILENO) == 1 && paged(text)) return;
  std::cout << text;
}

}  // namespace rekernel

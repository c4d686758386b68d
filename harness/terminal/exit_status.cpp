#include "harness/terminal/exit_status.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>

#include "harness/base/utf8.h"

namespace rekernel {

int bad_input(const Error& error) {
  // Messages may name files and quote texts of strangers, whose lines must not pass for ours.
  constexpr std::size_t longest = 64u << 10;
  std::istringstream lines(visible_lines(error.message, longest));
  std::string line;
  std::getline(lines, line);
  std::cerr << "rekernel: " << line << "\n";
  while (std::getline(lines, line))
    std::cerr << (line.starts_with("  ") ? "" : "  ") << line << "\n";
  return exit_bad_input;
}

int after_output(int exit_status) {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = errno;
  if (std::cout.good() && flushed && std::ferror(stdout) == 0) return exit_status;
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  const bool nobody_reads =
      reason == EPIPE || (::poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0);
  if (nobody_reads) {
    // Who starts children ignores the signal (run_child).
    ::signal(SIGPIPE, SIG_DFL);
    ::raise(SIGPIPE);
  }
  return bad_input(Error{"standard output: not everything could be written" +
                         (reason ? std::string(": ") + std::strerror(reason) : "")});
}

}  // namespace rekernel

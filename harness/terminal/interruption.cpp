#include "harness/terminal/interruption.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace rekernel {

namespace {

constexpr std::array numbers = {SIGINT, SIGTERM};

/// The handler's end of the pipe.
int write_end = -1;

}  // namespace

OnInterruption::OnInterruption(std::function<void()> act) : act_(std::move(act)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  read_end_ = FileDescriptor(ends[0]);
  write_end = ends[1];
  watcher_ = std::jthread([this] { watch(); });
  for (const int number : numbers) {
    struct sigaction action {};
    action.sa_handler = [](int caught) {
      const char byte = static_cast<char>(caught);
      (void)!::write(write_end, &byte, 1);
    };
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    struct sigaction present {};
    ::sigaction(number, nullptr, &present);
    if (present.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
  }
}

OnInterruption::~OnInterruption() {
  for (const int number : numbers) ::signal(number, SIG_DFL);
  if (write_end != -1) ::close(std::exchange(write_end, -1));
}

void OnInterruption::watch() {
  char number = 0;
  if (::read(read_end_.get(), &number, 1) != 1) return;
  act_();
  ::signal(number, SIG_DFL);
  ::kill(::getpid(), number);
}

}  // namespace rekernel

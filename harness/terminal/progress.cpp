#include "harness/terminal/progress.h"

#include <unistd.h>

#include <iostream>

#include "harness/base/time_left.h"

namespace rekernel {

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { show(""); }

void Progress::show(std::string_view text) {
  constexpr const char* clear_line = "\r\x1b[K";
  if (terminal_) std::cerr << clear_line << text << std::flush;
}

void Progress::step(std::size_t done, std::size_t total, std::string_view text) {
  if (!terminal_) return;
  const std::string left = time_left(std::chrono::steady_clock::now() - start_, done, total);
  show("[" + std::to_string(done) + "/" + std::to_string(total) + "] " + std::string(text) +
       (left.empty() ? "" : ", " + left));
}

}  // namespace rekernel

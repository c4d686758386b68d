#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// How a child process ended.
struct ChildOutcome {
  enum class End { exited, signalled, startup_deadline, run_deadline };
  End end = End::exited;
  int code = 0;            ///< exit status, or the signal's number
  std::string result;      ///< everything after the first line of the result pipe
  std::string last_words;  ///< the last line of standard error, shortened
};

/// The descriptor on which a child finds its result pipe.
inline constexpr int result_descriptor = 3;

/// Starts `arguments[0]` with `input` on its standard input. Standard output is dropped (device
/// code can print gigabytes), standard error is kept in part. The child has two deadlines: the
/// first ends when it writes a line to the result pipe, the second then begins. Past either, its
/// whole process group is killed. The child dies with its parent.
Result<ChildOutcome> run_child(const std::vector<std::string>& arguments, std::string_view input,
                               std::chrono::milliseconds startup_deadline,
                               std::chrono::milliseconds run_deadline);

/// The child's side: tells the parent that its start-up is over.
void report_started(int descriptor);

/// The child's side: writes everything or throws.
void write_all(int descriptor, std::string_view bytes);

/// The path of this program, to start it again.
std::string own_executable();

}  // namespace rekernel

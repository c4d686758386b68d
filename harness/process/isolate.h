#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// What the kernel of the operating system lets a child use. No child dumps core.
///
/// The number of processes is not among these: RLIMIT_NPROC counts all processes of a user, does
/// not bind root, and would count threads. lock_down() (system_calls.h) forbids processes instead.
struct ChildLimits {
  std::chrono::seconds processor_time{600};  ///< of all threads together
  std::int64_t file_bytes = 0;               ///< size up to which it may write a file
  int open_files = 256;
  /// Not for a child that uses CUDA, whose driver reserves address space by the terabyte.
  std::optional<std::int64_t> address_space_bytes;
};

/// A child process and all that it gets from its parent.
struct ChildCommand {
  std::vector<std::string> arguments;  ///< the program's path first
  std::string input;                   ///< on its standard input
  /// "NAME=value" each; this process's own if absent.
  std::optional<std::vector<std::string>> environment;
  ChildLimits limits;
  std::chrono::milliseconds deadline{0};
  /// How long it may take to exit once it has closed the result pipe: CUDA's own exit can hang.
  std::chrono::milliseconds exit_deadline = std::chrono::seconds(10);
  /// The child is killed once the other end of this pipe is closed; −1: only its deadline ends it.
  int stop = -1;
  /// Lines on its standard error that tell of refused system calls are repeated on this process's.
  bool tells_refused_calls = false;
  /// Descriptors that the child finds from first_inherited_descriptor on, in this order. They are
  /// closed here, whatever happens. Every other descriptor of the parent is closed in the child.
  std::vector<int> inherited;
};

/// How a child process ended.
struct ChildOutcome {
  enum class End { exited, signalled, deadline, result_too_long, stopped };
  End end = End::exited;
  int code = 0;            ///< exit status, or the signal's number
  std::string result;      ///< everything that it said on the result pipe
  std::string last_words;  ///< the last line of standard error, as one_line() has it
};

/// What follows the name of a child that ended: "died of Segmentation fault", "ended with status
/// 3".
std::string how_it_ended(const ChildOutcome& outcome);

/// The descriptors on which a child finds its result pipe and what else it inherits.
inline constexpr int result_descriptor = 3;
inline constexpr int first_inherited_descriptor = 4;
/// Bytes that a child may say on the former.
inline constexpr std::size_t largest_result = 64u << 20;

/// Runs a child to its end. Standard output is dropped (device code can print gigabytes), standard
/// error is kept in part. Past its deadline it is killed with everything that it started, and has
/// left the GPU when this returns. It dies with its parent.
Result<ChildOutcome> run_child(const ChildCommand& command);

/// The child's side: everything up to the end of the stream.
std::string read_all(int descriptor);

/// The path of this program, to start it again.
std::string own_executable();

}  // namespace rekernel

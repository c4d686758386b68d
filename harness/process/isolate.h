#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  /// What follows `input`, as soon as it is known. Runs in a thread of its own and is waited for,
  /// however the child ends.
  std::function<std::string()> more_input;
  /// "NAME=value" each; this process's own if absent.
  std::optional<std::vector<std::string>> environment;
  ChildLimits limits;
  std::chrono::milliseconds startup_deadline{0};
  std::chrono::milliseconds run_deadline{0};
  /// How long it may take to exit once it has closed the result pipe: CUDA's own exit can hang.
  std::chrono::milliseconds exit_deadline = std::chrono::seconds(10);
  /// The child is killed once the other end of this pipe is closed; −1: only its deadlines end it.
  int stop = -1;
  /// Descriptors that the child finds from first_inherited_descriptor on, in this order. They are
  /// closed here, whatever happens. Every other descriptor of the parent is closed in the child.
  std::vector<int> inherited;
};

/// How a child process ended.
struct ChildOutcome {
  enum class End { exited, signalled, startup_deadline, run_deadline, result_too_long, stopped };
  End end = End::exited;
  int code = 0;            ///< exit status, or the signal's number
  std::string startup;     ///< what it said when its start-up was over
  std::string result;      ///< everything that it said after that
  std::string last_words;  ///< the last line of standard error, shortened
};

/// The descriptors on which a child finds its result pipe and what else it inherits.
inline constexpr int result_descriptor = 3;
inline constexpr int first_inherited_descriptor = 4;
/// Bytes that a child may say on the former.
inline constexpr std::size_t largest_result = 64u << 20;

/// Runs a child to its end. Standard output is dropped (device code can print gigabytes), standard
/// error is kept in part. The child has two deadlines: the first ends with report_started(), the
/// second then begins. Past either it is killed with everything that it started, and has left the
/// GPU when this returns. It dies with its parent.
Result<ChildOutcome> run_child(const ChildCommand& command);

/// The child's side: tells the parent that its start-up is over, and a message with it.
void report_started(int descriptor, std::string_view message = {});

/// The child's side: writes everything or throws.
void write_all(int descriptor, std::string_view bytes);

/// The child's side: everything up to the end of the stream.
std::string read_all(int descriptor);

/// The child's side: one field as append_field wrote it, waiting for it. An error at the end of the
/// stream.
Result<std::string> read_field(int descriptor);

/// The path of this program, to start it again.
std::string own_executable();

}  // namespace rekernel

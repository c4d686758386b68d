#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "harness/candidate/candidate.h"
#include "harness/compile/compile.h"
#include "harness/device/buffers.h"
#include "harness/evaluation/rejection.h"
#include "harness/gpu/shared_memory.h"
#include "harness/process/channel.h"

namespace rekernel {

class RemoteRunner;

/// The process of a subject failed: its code faulted, a launch was refused, or the process is gone.
/// Ends an evaluation.
class RunnerFailure : public std::runtime_error {
 public:
  enum class Kind {
    faulted,  ///< the device refused an access: a run in other surroundings can tell to what
    gone,     ///< the process does not answer any more
    late,     ///< it took longer than it may: its work may still be on the device
    other,
  };
  RunnerFailure(const RemoteRunner& runner, Rejection rejection, Kind kind = Kind::other)
      : std::runtime_error(rejection.message),
        runner_(&runner),
        rejection_(std::move(rejection)),
        kind_(kind) {}
  bool is_of(const RemoteRunner& runner) const { return runner_ == &runner; }
  const Rejection& rejection() const { return rejection_; }
  Kind kind() const { return kind_; }

 private:
  const RemoteRunner* runner_;
  Rejection rejection_;
  Kind kind_;
};

/// The referee's view of one runner process (runner.h). Methods throw RunnerFailure when the
/// process or its code failed.
class RemoteRunner {
 public:
  /// Maps the buffers in the process, under their names.
  void lend(const Buffers& buffers, Access access);

  /// The number of the subject that runs a candidate, or why it cannot be launched here.
  Result<int> load(const Candidate& candidate, const CompiledProgram& code);
  /// The same code loaded again: its global variables start again as the source says.
  Result<Ok> reload(int subject);

  struct Reference {
    int subject = 0;
    std::string details;
  };
  /// A library reference for a problem, or why there is none.
  Result<Reference> make_reference(const std::string& problem, const std::string& id);
  /// The rate of an FP16 product of this extent of the buffers a, b and c, in operations per
  /// second.
  Result<std::int64_t> measure_matrix_rate(const std::string& reference, std::int64_t extent);

  /// All subjects are gone, and with them what was lent.
  void forget();

  /// What the process found out since the last time, for remember_all.
  std::string new_cache_entries();

  /// Lets the process end, and whatever of it is on the device.
  void hang_up() { channel_ = Channel(); }

  /// What is left to wait for this process and others that share it, and becomes less.
  void wait_at_most(std::chrono::nanoseconds* left) { left_ = left; }

  /// Issues a run, which begins once the word `go` is the ticket.
  void arm(int subject, std::uint32_t ticket);
  /// Waits for the end of the run, as the process tells it; nanoseconds between its events.
  std::int64_t finish();

  /// The words in the referee's context, and on its host.
  WordPage& words() { return words_; }

 private:
  friend class PendingRunner;
  RemoteRunner(Channel channel, const FileDescriptor& words)
      : channel_(std::move(channel)), words_(words) {}
  Fields ask(const Fields& request, std::span<const int> descriptors = {});
  Fields hear();

  Channel channel_;
  WordPage words_;
  std::chrono::nanoseconds* left_ = nullptr;
};

/// A runner process that opens the device when it is told to, and that nobody waits for before it
/// is needed.
class PendingRunner {
 public:
  PendingRunner() = default;
  /// `words` is the page that both processes map.
  PendingRunner(Channel channel, FileDescriptor words)
      : channel_(std::move(channel)), words_(std::move(words)) {}

  /// It will make these references.
  void open(const std::vector<std::string>& references = {});
  /// Waits until the device is open; the error says why it could not be opened. Later calls give
  /// the same.
  Result<RemoteRunner*> ready(std::chrono::milliseconds deadline);
  /// Lets the process end, if there is one.
  void hang_up();

 private:
  Channel channel_;
  FileDescriptor words_;
  std::unique_ptr<RemoteRunner> runner_;
};

}  // namespace rekernel

#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/report.h"
#include "harness/evaluation/request.h"
#include "harness/evaluation/served_process.h"
#include "harness/process/channel.h"

namespace rekernel {

/// A runner process (runner.h), and what the referee talks to it with.
struct RunnerProcess {
  static Result<RunnerProcess> start(const GpuIdentity& gpu, std::chrono::seconds lifetime);
  /// One for a candidate, which opens the device at once.
  static Result<RunnerProcess> start_opening(const GpuIdentity& gpu, std::chrono::seconds lifetime);

  std::unique_ptr<ServedProcess> process;
  FileDescriptor socket;
  FileDescriptor words;
};

/// The processes of an evaluation in which no code of a candidate ever runs: the referee and, once
/// one was needed, that of the libraries and that of programs that give a truth. They serve one
/// evaluation after the other, since to begin again takes most of the time that a short evaluation
/// takes, and the driver begins one process at a time on all GPUs of a machine together.
class Judges {
 public:
  static Result<std::unique_ptr<Judges>> start(const GpuIdentity& gpu);
  ~Judges() { stop(); }
  /// They are about to end.
  void stop();

  /// They open the device, and nobody waits for that: for an evaluation that is about to come.
  void prepare();

  /// What one evaluation consists of.
  struct Case {
    const Candidate& candidate;
    const EvaluateOptions& options;
    std::shared_future<Result<CompileOutcome>> compiled;
    /// The candidate's, and its second one, which opened the device. Only the referee talks to them
    /// from then on. None where those that stayed serve again.
    std::vector<RunnerProcess*> runners;
    std::vector<int> externals;  ///< two descriptors each; they stay the caller's
    bool runners_stay = false;   ///< for the next evaluation, if this one passes
  };
  /// How it ended: with a report, or with the end of the referee, which died or was killed past a
  /// deadline.
  struct Answer {
    std::optional<Result<EvaluationReport>> report;
    Result<ChildOutcome> death = Error{"the referee lives"};
    /// For the cache. What rests on no time is remembered already; choices by time are worth
    /// keeping once it is known that nobody else used the GPU.
    std::vector<std::string> found_out;
    bool began = false;    ///< the set-up was over
    bool late = false;     ///< past the deadline of the set-up, or of what follows
    bool compiled = true;  ///< the candidate's code was there by the deadline
  };
  Answer evaluate(const Case& one);

  /// Whether there may be a next evaluation.
  bool can_go_on() const { return channel_.is_open(); }

 private:
  Judges(const GpuIdentity& gpu, Channel channel, std::unique_ptr<ServedProcess> referee)
      : gpu_(gpu), channel_(std::move(channel)), referee_(std::move(referee)) {}
  Result<Ok> start_libraries();
  /// The referee's end of the socket.
  Result<FileDescriptor> start_truth_process();
  Result<Ok> send(const Fields& fields, std::span<RunnerProcess* const> handed,
                  std::span<const int> others);
  Result<Ok> ask(const Case& one);
  void bury(Answer& answer);

  GpuIdentity gpu_;
  std::optional<RunnerProcess> libraries_;
  std::unique_ptr<ServedProcess> truth_;
  Channel channel_;
  std::unique_ptr<ServedProcess> referee_;
};

}  // namespace rekernel

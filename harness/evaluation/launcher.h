#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/report.h"
#include "harness/evaluation/request.h"
#include "harness/gpu/identity.h"

namespace rekernel {

/// Where evaluations are made. `evaluate`, `bench`, `noise`, `errors` and `search` know no other
/// way to one.
class EvaluationLauncher {
 public:
  virtual ~EvaluationLauncher() = default;
  virtual EvaluationReport evaluate(const Candidate& candidate, const EvaluateOptions& options) = 0;
};

/// A process of ours that external references live in, for as many evaluations as one likes. It
/// runs outside the sandbox: PyTorch needs its owner's files, compilers and caches. The referee
/// talks to it, and cannot start it.
class ExternalSession {
 public:
  virtual ~ExternalSession() = default;
  /// What the referee inherits for one reference: the conversation, and what the process says on
  /// standard error. Both stay the session's.
  virtual Result<std::array<int, 2>> descriptors() = 0;
};

/// On this machine, in processes of their own (this program's hidden commands `referee-worker` and
/// `runner-worker`), with both deadlines: a crash, a hang or a poisoned context becomes the
/// candidate's status. The candidate is compiled meanwhile, in another child. Its own processes end
/// with its evaluation, or at other sizes that are not timed serve again. Those in which no code of
/// it runs stay for the next one, for a moment and with the lock of the GPU, unless somebody else
/// waits for that; where they served before, so do two for the next candidate, which start while
/// the last one's end. Any number of threads may call it.
class LocalLauncher : public EvaluationLauncher {
 public:
  /// `session` gives the external references that options name; it may be absent where none are. An
  /// evaluation that takes times has the GPU for itself: others of ours queue for it, and `waiting`
  /// is told who has it; after more than `patience`, and where another process computes there, it
  /// is a failure that names that.
  explicit LocalLauncher(ExternalSession* session = nullptr,
                         std::function<void(const std::string&)> waiting = {},
                         std::optional<std::chrono::seconds> patience = {});
  ~LocalLauncher() override;
  EvaluationReport evaluate(const Candidate& candidate, const EvaluateOptions& options) override;

  /// Candidates will come for this GPU in a moment: what they need there begins to start, if nobody
  /// else evaluates there.
  void prepare(int device);

 private:
  struct Place;
  struct CandidateProcesses;

  std::unique_ptr<Place> take_place(const GpuIdentity& gpu);
  void leave_place(std::unique_ptr<Place> place);
  void clear_idle_places(const std::stop_token& stop);
  EvaluationReport evaluate_alone(const Candidate& candidate, const EvaluateOptions& options,
                                  Place& place, CandidateProcesses& processes);
  EvaluationReport start_and_wait(const Candidate& candidate, const EvaluateOptions& options,
                                  Place& place, CandidateProcesses& processes);
  std::optional<EvaluationReport> judged(const Candidate& candidate, const EvaluateOptions& options,
                                         const std::shared_future<Result<CompileOutcome>>& compiled,
                                         Place& place, bool kept, CandidateProcesses& processes);
  void tell_which_buffer(const Candidate& candidate, const EvaluateOptions& options, Place& place,
                         EvaluationReport& report);

  ExternalSession* session_;
  std::function<void(const std::string&)> waiting_;
  std::optional<std::chrono::seconds> patience_;
  std::mutex mutex_;  ///< of what follows
  std::vector<std::unique_ptr<Place>> idle_;
  std::condition_variable_any change_;
  std::jthread caretaker_;  ///< ends before the rest goes
};

}  // namespace rekernel

#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/evaluate.h"
#include "harness/gpu/identity.h"
#include "harness/process/isolate.h"

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
/// candidate's status. The candidate is compiled meanwhile, in another child.
class LocalLauncher : public EvaluationLauncher {
 public:
  /// `session` gives the external references that options name; it may be absent where none are. An
  /// evaluation that takes times has the GPU for itself: others of ours queue for it, and `waiting`
  /// is told who has it; after more than `patience`, and where another process computes there, it
  /// is a failure that names that.
  explicit LocalLauncher(ExternalSession* session = nullptr,
                         std::function<void(const std::string&)> waiting = {},
                         std::optional<std::chrono::seconds> patience = {})
      : session_(session), waiting_(std::move(waiting)), patience_(patience) {}
  EvaluationReport evaluate(const Candidate& candidate, const EvaluateOptions& options) override;

 private:
  EvaluationReport evaluate_alone(const Candidate& candidate, const EvaluateOptions& options,
                                  const GpuIdentity& gpu);
  EvaluationReport start_and_wait(const Candidate& candidate, const EvaluateOptions& options,
                                  const GpuIdentity& gpu);
  EvaluationReport start_processes(const Candidate& candidate, const EvaluateOptions& options,
                                   const GpuIdentity& gpu);

  ExternalSession* session_;
  std::function<void(const std::string&)> waiting_;
  std::optional<std::chrono::seconds> patience_;
};

}  // namespace rekernel

#pragma once

#include <array>
#include <functional>
#include <memory>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/evaluate.h"
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
  /// `session` gives the external references that options name; it may be absent where none are.
  /// `exclusive`: take the GPU for the time of each evaluation that takes times, and see that
  /// nobody else computes on it. `waiting` is told once when somebody else has it.
  explicit LocalLauncher(ExternalSession* session = nullptr,
                         std::function<void(const std::string&)> waiting = {})
      : session_(session), waiting_(std::move(waiting)) {}
  EvaluationReport evaluate(const Candidate& candidate, const EvaluateOptions& options) override;

 private:
  EvaluationReport evaluate_once(const Candidate& candidate, const EvaluateOptions& options);

  ExternalSession* session_;
  std::function<void(const std::string&)> waiting_;
};

}  // namespace rekernel

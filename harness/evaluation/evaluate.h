#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/compile/compile_isolated.h"
#include "harness/device/launch.h"
#include "harness/evaluation/evaluation.h"
#include "ops/problem.h"

namespace rekernel {

/// How a candidate is judged. The defaults are what a published verdict needs.
struct EvaluateOptions {
  std::vector<std::string>
      references;  ///< ids to time beside the candidate; the first is the headline
  std::vector<std::string>
      external_references;  ///< ids of references in a process of their own (PyTorch)
  int device = 0;
  int samples = 60;                   ///< timed samples of the candidate and of each reference
  std::optional<std::uint64_t> seed;  ///< first of the seeds; fresh ones if absent
  bool stress = true;                 ///< run the stress inputs for the `robust` badge
  /// Only one checked run and no timing: for sanitizers and profilers, under which times mean
  /// nothing.
  bool once = false;
  /// False: every check of a verdict but the floor, no times, the references' errors. The samples
  /// that would be timed are judged, all of them. Other work on the GPU does no harm then.
  bool timing = true;
  int check_seeds = 5;  ///< fewer than these only where the errors are asked for, not a verdict
  /// More than 0: no judging, but so many runs of an A/A experiment with `noise_subject`, a
  /// reference of `references`, or the candidate itself where it is empty.
  int noise_runs = 0;
  std::string noise_subject;
  std::chrono::seconds startup_deadline{60};  ///< driver, libraries, engine choice, compilation
  std::chrono::seconds run_deadline{120};     ///< checks and timing
};

boost::json::object to_json(const EvaluateOptions& options);
Result<EvaluateOptions> evaluate_options_from_json(JsonReader reader);

/// Times a reference that lives in another process, in blocks between the candidate's own.
class ExternalReference {
 public:
  virtual ~ExternalReference() = default;
  virtual Result<std::vector<std::int64_t>> time_block(int samples, std::uint64_t seed) = 0;
  virtual std::string details() const = 0;
};

/// A process of ours that an external reference lives in. It runs outside the sandbox: PyTorch
/// needs its owner's files, compilers and caches. The evaluating child talks to it, and cannot
/// start it.
class ExternalProcess {
 public:
  virtual ~ExternalProcess() = default;
  /// What the child inherits: the conversation, and what the process says on standard error. Gives
  /// them away.
  virtual std::array<int, 2> take_descriptors() = 0;
};
using StartExternal = std::function<Result<std::unique_ptr<ExternalProcess>>()>;

/// Where an evaluation gets its references from. The harness does not know the libraries.
struct ReferenceSource {
  std::function<Result<std::unique_ptr<Runnable>>(const std::string& id, const Problem&,
                                                  const Bindings&, const Device&)>
      make;
  /// From the descriptors of an ExternalProcess, which it then owns.
  std::function<Result<std::unique_ptr<ExternalReference>>(const std::string& id, const Problem&,
                                                           const std::array<int, 2>& descriptors)>
      make_external;
};

/// The outcome of one evaluation and what else was measured in the same process.
struct EvaluationReport {
  /// Why nothing could be said about the candidate (no GPU, too little memory): a failure of the
  /// set-up and no verdict. Empty when there is a verdict.
  std::string failure;
  Evaluation evaluation;
  Ceilings ceilings;
  std::optional<DeviceProperties> device;
  std::vector<NoiseRun> noise;  ///< of an A/A experiment
};

/// Checks and times a candidate in this process; `compiled` gives its machine code, when it is
/// needed, and `started` is called when the set-up is over and the candidate is about to run for
/// the first time. Only inside a child process: a bad kernel can poison the CUDA context.
EvaluationReport evaluate_here(const Candidate& candidate, const EvaluateOptions& options,
                               const ReferenceSource& references,
                               const std::function<Result<CompileOutcome>()>& compiled,
                               const std::function<void()>& started);

/// The same in a child process (this program's hidden command `evaluate-worker`), with both
/// deadlines: a crash, a hang or a poisoned context becomes the candidate's status. The candidate
/// is compiled meanwhile, in another child. `start_external` starts the process of each external
/// reference that the options name.
EvaluationReport evaluate_isolated(const Candidate& candidate, const EvaluateOptions& options,
                                   const StartExternal& start_external = {});

/// The child's side of evaluate_isolated: reads the request on standard input, writes the report to
/// the result pipe. Returns the exit status.
int run_evaluation_worker(const ReferenceSource& references);

}  // namespace rekernel

#pragma once

#include <array>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/compile/compile_isolated.h"
#include "harness/device/buffers.h"
#include "harness/device/device_tools.h"
#include "harness/evaluation/check.h"
#include "harness/evaluation/instruments.h"
#include "harness/evaluation/laps.h"
#include "harness/evaluation/reference_source.h"
#include "harness/evaluation/remote_runner.h"
#include "harness/evaluation/report.h"
#include "harness/evaluation/request.h"
#include "harness/evaluation/sampler.h"
#include "harness/evaluation/setup_failure.h"
#include "harness/gpu/nvml.h"
#include "harness/process/channel.h"

namespace rekernel {

/// The other processes of an evaluation.
struct Connections {
  /// Two for a verdict: neither has what the other one may have left.
  std::vector<PendingRunner> candidate;
  /// They are left as they were found where the candidate passes, for its next evaluation.
  bool candidate_stays = false;
  PendingRunner* libraries = nullptr;  ///< null where no library is needed
  /// To the process of the program that gives the truth; null where a definition does.
  Channel* truth = nullptr;
  /// One each of options.external_references.
  std::vector<std::array<FileDescriptor, 2>> externals;
};

/// Our own programs, which compile in the background from the start. The candidate's source never
/// comes near this process's compiler.
struct OwnPrograms {
  OwnPrograms(const Problem& problem, const std::string& target);
  /// The problem's inputs; waits for what makes them. Throws SetupFailure.
  InputBuffers make_inputs(const Problem& problem, const DeviceTools& device_tools,
                           Surroundings surroundings, const DeviceProperties& device);
  /// The problem's checker; waits for what it needs. Throws SetupFailure.
  Checker make_checker(const Problem& problem, const InputBuffers& inputs,
                       const DeviceTools& device_tools, Channel* truth_program,
                       const DeviceProperties& device, const Stream& stream);

  std::future<Result<CompiledProgram>> tools;
  std::future<Result<CompiledProgram>> oracle;  ///< none where a program gives the truth
  std::future<Result<CompiledProgram>> calibration;
  std::future<Result<CompiledProgram>> making;  ///< none where no inputs are made
  std::vector<std::future<Result<CompiledProgram>>> invariants;
};

/// All that an evaluation works with, complete once constructed: a device with our tools on it, the
/// problem's inputs, the means to run and to judge, and the processes of the candidate and of the
/// libraries with their memory lent to them. No code of the candidate's is loaded yet.
class Rig {
 public:
  /// Throws SetupFailure. All must outlive it.
  Rig(const Candidate& candidate, const Problem& problem, const EvaluateOptions& options,
      const ReferenceSource& source, const Device& device, Connections& connections,
      EvaluationReport& report, Laps& laps);

  void lend_to_candidate(RemoteRunner& runner);

  /// Lets the candidate's processes end; they need not wait for each other.
  void hang_up();

  /// Whether the device runs what the candidate is written for; why not.
  std::optional<Rejection> check_architecture() const;

  const Candidate& candidate;
  const Problem& problem;
  const EvaluateOptions& options;
  const ReferenceSource& source;
  Laps& laps;

  const Device& device;
  std::string target;  ///< "sm_90a"
  OwnPrograms programs;
  Stream stream;
  std::optional<GpuMonitor> monitor;
  DeviceTools tools;
  InputBuffers inputs;
  Checker checker;
  Sampler sampler;

  std::vector<RemoteRunner*> runners;  ///< of the candidate
  /// What is left of the run deadline for them to answer in.
  std::chrono::nanoseconds time_of_candidate = options.run_deadline;
  RemoteRunner* libraries = nullptr;  ///< null where no library is needed
  SubjectBuffers candidate_buffers;
  /// None in an A/A experiment, where both processes write to candidate_buffers: where a buffer
  /// lies in the GPU's memory shifts times, on an H200 a softmax's by 0.1%.
  std::optional<SubjectBuffers> library_buffers;
  std::int64_t matrix_rate = 0;  ///< FP16 operations per second of the best library product
  std::vector<ReferenceState> references;
  std::vector<Subject> reference_subjects;  ///< of `references`
  std::vector<std::array<FileDescriptor, 2>>& externals;

 private:
  RemoteRunner* connected(PendingRunner& process) const;
  SubjectBuffers& buffers_of_libraries();
  void check_time_of_draws();
  void prepare_libraries(PendingRunner& process);
  void measure_matrix_rate();
  void prepare_references();

  std::vector<PendingRunner>& candidate_processes_;
};

/// How many processes for the candidate an evaluation needs.
std::size_t candidate_processes(const EvaluateOptions& options);
/// Whether it needs a process for the libraries.
bool needs_libraries(const EvaluateOptions& options, const Problem& problem);
/// Whether it needs a process for the program that gives the truth.
bool needs_truth_program(const EvaluateOptions& options, const Problem& problem);

/// Known works of our own, run by the candidate's processes before they get the candidate's code:
/// one calibration for each.
std::vector<ClockCalibration> calibrate_clocks(Rig& rig);

/// Loads the candidate's code in its processes, or says why it does not pass.
struct LoadedCandidate {
  std::optional<Rejection> rejection;
  std::vector<Subject> subjects;  ///< one for each process
};
LoadedCandidate load_candidate_code(Rig& rig, const CompileOutcome& outcome, Evaluation& result);

/// Whether kernels of ours are kept from the GPU at this moment: something else has slices of it,
/// or is just leaving it.
bool is_interrupted(const Rig& rig);

}  // namespace rekernel

#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/compile/compile_isolated.h"
#include "harness/device/buffers.h"
#include "harness/device/device_tools.h"
#include "harness/evaluation/check.h"
#include "harness/evaluation/evaluate.h"
#include "harness/evaluation/reference_source.h"
#include "harness/evaluation/remote_runner.h"
#include "harness/evaluation/sampler.h"
#include "harness/gpu/nvml.h"
#include "harness/process/channel.h"

namespace rekernel {

/// A failure of the set-up, not of the candidate.
class SetupFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
T or_setup_failure(Result<T> result) {
  if (!result) throw SetupFailure(result.error().message);
  return std::move(*result);
}

/// Where the wall time goes.
class Laps {
 public:
  explicit Laps(std::vector<std::pair<std::string, std::int64_t>>& split_ns)
      : split_ns_(split_ns) {}
  /// All since the last lap was this phase.
  void lap(const std::string& phase);

 private:
  std::vector<std::pair<std::string, std::int64_t>>& split_ns_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// The other processes of an evaluation.
struct Connections {
  PendingRunner candidate;
  /// A second process for the candidate, with nothing in it that the first may have left behind. It
  /// has not been told to open the device.
  std::optional<PendingRunner> repetition;
  PendingRunner* libraries = nullptr;  ///< null where no library is needed
  /// One each of options.external_references.
  std::vector<std::array<FileDescriptor, 2>> externals;
};

/// Our own programs, which compile in the background from the start. The candidate's source never
/// comes near this process's compiler.
struct OwnPrograms {
  OwnPrograms(const Problem& problem, const std::string& target);
  std::future<Result<CompiledProgram>> tools;
  std::future<Result<CompiledProgram>> oracle;
  std::future<Result<CompiledProgram>> calibration;
  std::vector<std::future<Result<CompiledProgram>>> invariants;
};

struct PreparedReference {
  std::string id;
  std::string details;
  std::string unavailable;  ///< why there is none; empty if there is
  Subject subject;
  std::int64_t alone_ns = 0;  ///< median time before any code of a candidate was loaded
};

/// All that an evaluation works with, complete once constructed: a device with our tools on it, the
/// problem's inputs, the means to run and to judge, and the processes of the candidate and of the
/// libraries with their memory lent to them. No code of the candidate's is loaded yet.
class Rig {
 public:
  /// Throws SetupFailure. All but the connections must outlive it.
  Rig(const Candidate& candidate, const Problem& problem, const EvaluateOptions& options,
      const ReferenceSource& source, const Device& device, Connections connections,
      EvaluationReport& report, Laps& laps);

  /// The second process of the candidate begins to open the device, which others notice: nobody may
  /// be timed meanwhile.
  void open_repetition();
  /// That process with the memory lent to it, once it has opened the device.
  RemoteRunner& repetition();
  void end_repetition();

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

  RemoteRunner* runner = nullptr;     ///< of the candidate
  RemoteRunner* libraries = nullptr;  ///< null where no library is needed
  SubjectBuffers candidate_buffers;
  /// None in an A/A experiment, where both processes write to candidate_buffers: where a buffer
  /// lies in the GPU's memory shifts times, on an H200 a softmax's by 0.1%.
  std::optional<SubjectBuffers> library_buffers;
  std::int64_t matrix_rate = 0;  ///< FP16 operations per second of the best library product
  std::vector<PreparedReference> references;
  std::vector<std::array<FileDescriptor, 2>> externals;

  /// The first reference that could be made.
  const PreparedReference* headline() const;

 private:
  RemoteRunner* connected(PendingRunner& process) const;
  SubjectBuffers& buffers_of_libraries();
  void measure_matrix_rate();
  void prepare_references();

  PendingRunner candidate_process_;
  std::optional<PendingRunner>
      repetition_process_;  ///< for its last repeated run, where one is made
};

/// Whether an evaluation needs a second process for the candidate.
bool needs_repetition(const EvaluateOptions& options);
/// Whether it needs a process for the libraries.
bool needs_libraries(const EvaluateOptions& options, const Problem& problem);

/// Known works of our own, run by the candidate's process before it gets the candidate's code.
ClockCalibration calibrate_clock(Rig& rig);

/// Loads the candidate's code in its process, or says why it does not pass.
struct LoadedCandidate {
  std::optional<Rejection> rejection;
  Subject subject;
};
LoadedCandidate load_candidate_code(Rig& rig, const CompileOutcome& outcome, Evaluation& result);

/// Whether kernels of ours are kept from the GPU at this moment: something else has slices of it,
/// or is just leaving it.
bool is_interrupted(const Rig& rig);

}  // namespace rekernel

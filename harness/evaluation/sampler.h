#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "harness/device/buffers.h"
#include "harness/device/device_tools.h"
#include "harness/evaluation/evaluation.h"
#include "harness/evaluation/remote_runner.h"
#include "harness/evaluation/witness.h"
#include "harness/gpu/nvml.h"

namespace rekernel {

/// Work in a runner process that computes the problem's outputs when told to, and the memory that
/// it writes.
struct Subject {
  RemoteRunner* runner = nullptr;
  int number = 0;
  SubjectBuffers* buffers = nullptr;
};

/// Runs a candidate or a reference under the one protocol that checks and timings share, so that a
/// kernel cannot tell them apart: new inputs from a new seed, poisoned outputs and workspaces,
/// guard bands of a new byte, a cold L2 cache, then the whole plan, then snapshots of the outputs.
class Sampler {
 public:
  /// Keeps references to inputs, tools and stream. Every run leaves each output in the snapshot of
  /// its name.
  Sampler(InputBuffers& inputs, const DeviceTools& tools, const DeviceProperties& device,
          const Stream& stream, Bindings snapshots);

  /// One run. The subject's process issues the whole plan before the device may begin it, so that
  /// no cost of launching from the host counts. Throws RunnerFailure.
  RunTimes run(const Subject& subject, std::uint64_t seed, const StressCase* stress = nullptr);

  /// The same; runs during which the GPU was throttled are thrown away and made again, with a fresh
  /// seed each: the seed becomes that of the run that counted. Throws std::runtime_error when the
  /// GPU stays throttled.
  RunTimes timed_run(const Subject& subject, std::uint64_t& seed);

  /// A seed that no kernel can foresee.
  std::uint64_t fresh_seed();

  /// Microseconds make no gaps on a GPU that nobody else uses: the longest time, in nanoseconds,
  /// during which a kernel of ours that never pauses did not run.
  std::int64_t longest_pause_ns() const;

  void watch(const GpuMonitor& monitor) { monitor_ = &monitor; }
  GpuConditions conditions() const;

 private:
  void prepare(const Subject& subject, std::uint64_t seed, const StressCase* stress);
  BufferView stamp_slot(int number) const;

  InputBuffers& inputs_;
  const DeviceTools& tools_;
  const Stream& stream_;
  Bindings snapshots_;
  DeviceBuffer cache_filler_;
  DeviceBuffer stamps_;
  std::random_device entropy_;
  const GpuMonitor* monitor_ = nullptr;
  std::vector<GpuReading> readings_;
  int rejected_samples_ = 0;
};

}  // namespace rekernel

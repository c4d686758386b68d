#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "harness/device/device_tools.h"
#include "harness/device/problem_buffers.h"
#include "harness/evaluation/evaluation.h"
#include "harness/gpu/nvml.h"

namespace rekernel {

/// Runs a candidate or a reference under the one protocol that checks and timings share, so that a
/// kernel cannot tell them apart: new inputs from a new seed, poisoned output and workspaces, guard
/// bands of a new byte, a cold L2 cache, then the whole plan between two events.
class Sampler {
 public:
  /// Keeps references to buffers, tools and stream.
  Sampler(ProblemBuffers& buffers, const DeviceTools& tools, const DeviceProperties& device,
          const Stream& stream);

  /// Nanoseconds of one run. The host issues everything at once and the device is still busy with
  /// the preparation meanwhile, so that launch latency does not count.
  std::int64_t run(Runnable& runnable, std::uint64_t seed, const StressCase* stress = nullptr);

  /// run, with a fresh seed; samples during which the GPU was throttled are thrown away and
  /// repeated. Throws std::runtime_error when it stays throttled. `last_seed` tells the seed of the
  /// sample that counted.
  std::int64_t timed_run(Runnable& runnable);
  std::uint64_t last_seed() const { return last_seed_; }

  /// A seed that no kernel can foresee.
  std::uint64_t fresh_seed() { return generator_(); }

  void watch(const GpuMonitor& monitor) { monitor_ = &monitor; }
  GpuConditions conditions() const;

 private:
  ProblemBuffers& buffers_;
  const DeviceTools& tools_;
  const Stream& stream_;
  DeviceBuffer cache_filler_;
  Event start_;
  Event stop_;
  std::mt19937_64 generator_;
  unsigned runs_ = 0;
  std::uint64_t last_seed_ = 0;
  const GpuMonitor* monitor_ = nullptr;
  std::vector<GpuReading> readings_;
  int rejected_samples_ = 0;
};

}  // namespace rekernel

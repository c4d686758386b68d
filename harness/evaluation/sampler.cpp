#include "harness/evaluation/sampler.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "harness/evaluation/statistics.h"

namespace rekernel {

namespace {

constexpr int tries_under_throttling = 10;
/// Times the number of the try: time to cool down, 4.5 seconds in all.
constexpr std::chrono::milliseconds pause_under_throttling{100};

std::mt19937_64 unforeseeable_generator() {
  std::random_device entropy;
  std::seed_seq seed{entropy(), entropy(), entropy(), entropy()};
  return std::mt19937_64(seed);
}

std::int64_t cache_filler_bytes(const DeviceProperties& device) {
  return std::max<std::int64_t>(2 * device.l2_bytes, 1 << 20) / 16 * 16 + 16;
}

/// Lines that a kernel left in the L2 cache with priority (evict_last) would outlive the
/// overwriting.
void release_persisting_lines() {
  const CUresult result = driver().cuCtxResetPersistingL2Cache();
  // A device without such lines has none to release.
  if (result != CUDA_ERROR_NOT_SUPPORTED) cuda_check(result, "cuCtxResetPersistingL2Cache()");
}

template <class Field>
int median_of(const std::vector<GpuReading>& readings, Field field) {
  std::vector<std::int64_t> values;
  for (const GpuReading& reading : readings) values.push_back(reading.*field);
  return values.empty() ? 0 : static_cast<int>(quantile(values, 0.5));
}

/// One of 28 bytes that no float format takes for a small number, so that what is read beyond a
/// buffer does not pass for the zeros of padding.
std::uint8_t guard_byte(std::uint64_t random) {
  return static_cast<std::uint8_t>((random & 0x80) + 0x71 + (random >> 8) % 14);
}

}  // namespace

Sampler::Sampler(ProblemBuffers& buffers, const DeviceTools& tools, const DeviceProperties& device,
                 const Stream& stream)
    : buffers_(buffers),
      tools_(tools),
      stream_(stream),
      cache_filler_(cache_filler_bytes(device)),
      generator_(unforeseeable_generator()) {}

std::int64_t Sampler::run(Runnable& runnable, std::uint64_t seed, const StressCase* stress) {
  release_persisting_lines();
  buffers_.fill_inputs(seed, stress, stream_);
  buffers_.poison(runs_++ % 2 == 0 ? poison_byte : other_poison_byte, stream_);
  buffers_.draw_guards(guard_byte(generator_()), stream_);
  tools_.overwrite({cache_filler_.get(), cache_filler_.bytes()}, stream_);
  start_.record(stream_);
  runnable.enqueue(stream_.get());
  stop_.record(stream_);
  const std::int64_t elapsed = elapsed_ns(start_, stop_);
  stream_.synchronize();  // an error of work that the events did not wait for must show here
  return elapsed;
}

std::int64_t Sampler::timed_run(Runnable& runnable) {
  for (int attempt = 1;; ++attempt) {
    last_seed_ = fresh_seed();
    const std::int64_t elapsed = run(runnable, last_seed_);
    if (!monitor_) return elapsed;
    const GpuReading reading = monitor_->read();
    readings_.push_back(reading);
    if (!reading.throttled()) return elapsed;
    ++rejected_samples_;
    if (attempt == tries_under_throttling) {
      throw std::runtime_error("the GPU stays throttled (NVML's reasons " +
                               std::to_string(reading.throttle_reasons) +
                               "): no time is taken from it");
    }
    std::this_thread::sleep_for(attempt * pause_under_throttling);
  }
}

GpuConditions Sampler::conditions() const {
  GpuConditions conditions;
  conditions.sm_clock_mhz = median_of(readings_, &GpuReading::sm_clock_mhz);
  conditions.temperature_c = median_of(readings_, &GpuReading::temperature_c);
  conditions.power_w = median_of(readings_, &GpuReading::power_w);
  for (const GpuReading& reading : readings_) {
    conditions.throttle_reasons |= reading.throttle_reasons;
  }
  conditions.rejected_samples = rejected_samples_;
  return conditions;
}

}  // namespace rekernel

#include "harness/evaluation/sampler.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "harness/base/quantile.h"

namespace rekernel {

namespace {

constexpr int tries_under_throttling = 10;
/// Times the number of the try: time to cool down, 4.5 seconds in all.
constexpr std::chrono::milliseconds pause_under_throttling{100};

/// Places of the referee's stamps.
enum : int {
  before_preparation,
  before_flush,
  after_flush,
  before_snapshot,
  after_snapshot,
  stamp_count
};

/// Several times the slice of time that the GPU gives to one process of several.
constexpr std::chrono::milliseconds watch_for_pauses{12};

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

Sampler::Sampler(InputBuffers& inputs, const DeviceTools& tools, const DeviceProperties& device,
                 const Stream& stream, Bindings snapshots)
    : inputs_(inputs),
      tools_(tools),
      stream_(stream),
      snapshots_(std::move(snapshots)),
      cache_filler_(cache_filler_bytes(device)),
      stamps_(stamp_count * static_cast<std::int64_t>(sizeof(std::uint64_t))) {}

BufferView Sampler::stamp_slot(int number) const {
  constexpr std::int64_t bytes = sizeof(std::uint64_t);
  return {stamps_.get() + static_cast<CUdeviceptr>(number * bytes), bytes};
}

std::uint64_t Sampler::fresh_seed() {
  // Each from the operating system: no number of them tells the next one.
  return std::uint64_t{entropy_()} << 32 | entropy_();
}

void Sampler::prepare(const Subject& subject, std::uint64_t seed, const StressCase* stress) {
  inputs_.fill(seed, stress, stream_);
  const std::uint8_t guard = guard_byte(fresh_seed());
  inputs_.draw_guards(guard, stream_);
  // At random: turns would tell how many runs others had.
  subject.buffers->poison(fresh_seed() % 2 == 0 ? poison_byte : other_poison_byte, stream_);
  subject.buffers->draw_guards(guard, stream_);
}

RunTimes Sampler::run(const Subject& subject, std::uint64_t seed, const StressCase* stress) {
  inputs_.draw_ahead(seed);
  WordPage& words = subject.runner->words();
  // Nobody foresees the ticket, so that no code of an earlier run can have written it.
  const auto ticket = static_cast<std::uint32_t>(fresh_seed());
  subject.runner->arm(subject.number, ticket);
  if (words.word(WordPage::go).load() == ticket) {
    throw RunnerFailure(*subject.runner,
                        {Status::forged_time, "the plan was let go before its time"});
  }
  release_persisting_lines();
  // From here to the snapshot everything is issued at once, and stamped: new inputs lie nowhere
  // while nobody looks at the clock.
  tools_.stamp(stamp_slot(before_preparation), stream_);
  prepare(subject, seed, stress);
  tools_.stamp(stamp_slot(before_flush), stream_);
  tools_.overwrite({cache_filler_.get(), cache_filler_.bytes()}, stream_);
  tools_.stamp(stamp_slot(after_flush), stream_);
  write_word(stream_, words.address(WordPage::go), ticket);
  wait_for_word(stream_, words.address(WordPage::done), ticket);
  tools_.stamp(stamp_slot(before_snapshot), stream_);
  // By a kernel: a copy engine would not wait for others' kernels to leave the multiprocessors.
  for (const auto& [name, output] : subject.buffers->outputs()) {
    tools_.copy(snapshots_.at(name), output, stream_);
  }
  tools_.stamp(stamp_slot(after_snapshot), stream_);

  RunTimes times;
  try {
    times.events_ns = subject.runner->finish();
  } catch (const RunnerFailure& failure) {
    if (failure.kind() == RunnerFailure::Kind::late) throw;  // the device may be busy for good
    // Our stream still waits for a run that will not end.
    words.word(WordPage::done).store(ticket);
    stream_.synchronize();
    throw;
  }
  stream_.synchronize();
  std::array<std::int64_t, stamp_count> stamps{};
  REKERNEL_CUDA(cuMemcpyDtoH(stamps.data(), stamps_.get(), sizeof stamps));
  times.stamps_ns = stamps[before_snapshot] - stamps[after_flush];
  times.prepare_ns = stamps[before_flush] - stamps[before_preparation];
  times.flush_ns = stamps[after_flush] - stamps[before_flush];
  times.snapshot_ns = stamps[after_snapshot] - stamps[before_snapshot];
  if (times.events_ns <= 0) {
    throw RunnerFailure(*subject.runner,
                        {Status::forged_time,
                         "its events say that it took " + std::to_string(times.events_ns) + " ns"});
  }
  return times;
}

RunTimes Sampler::timed_run(const Subject& subject, std::uint64_t& seed) {
  for (int attempt = 1;; ++attempt) {
    const RunTimes times = run(subject, seed);
    if (!monitor_) return times;
    const GpuReading reading = monitor_->read();
    readings_.push_back(reading);
    if (!reading.throttled()) return times;
    ++rejected_samples_;
    if (attempt == tries_under_throttling) {
      throw std::runtime_error("the GPU stays throttled (NVML's reasons " +
                               std::to_string(reading.throttle_reasons) +
                               "): no time is taken from it");
    }
    std::this_thread::sleep_for(attempt * pause_under_throttling);
    seed = fresh_seed();
  }
}

std::int64_t Sampler::longest_pause_ns() const {
  return tools_.longest_pause_ns(watch_for_pauses, stream_);
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

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "harness/compile/compile.h"
#include "harness/device/error_stats.h"
#include "harness/device/launch.h"
#include "harness/gpu/cuda.h"
#include "ops/problem.h"

namespace rekernel {

/// The program whose kernels DeviceTools launches. Compile it for the device's target.
Program device_tools_program();

/// The byte that memory is filled with where nothing may be read: a NaN in every float format.
inline constexpr std::uint8_t poison_byte = 0xFF;
/// It takes turns with poison_byte in outputs and workspaces, so that no kernel can lean on either:
/// a NaN in FP16 and FP8, 3.4e38 in FP32 and BF16, a large number in integers. No condition has
/// either.
inline constexpr std::uint8_t other_poison_byte = 0x7F;

/// The harness's own device code: making inputs, comparing results, digests, and cache flushing.
/// Methods issue work on the given stream; those that return a value wait for it.
class DeviceTools {
 public:
  DeviceTools(const CompiledProgram& compiled, const DeviceProperties& device);

  void fill(const BufferView& buffer, DType dtype, const Distribution& distribution,
            std::uint64_t seed, std::uint32_t stream_number, const Stream& stream) const;

  /// Elements that differ in any bit from what `fill` writes.
  std::int64_t count_input_mismatches(const BufferView& buffer, DType dtype,
                                      const Distribution& distribution, std::uint64_t seed,
                                      std::uint32_t stream_number, const Stream& stream) const;

  /// Bytes that differ from `value`.
  std::int64_t count_other_bytes(const BufferView& buffer, std::uint8_t value,
                                 const Stream& stream) const;

  /// Root mean square of float64 values.
  double root_mean_square(const BufferView& truth, const Stream& stream) const;

  /// Compares what lies in a buffer, the output `tensor`, with its float64 truth, as
  /// `tensor.comparison` says. The absolute parts of the published and of the strict tolerance are
  /// multiplied by `absolute_scale`. An infinite truth has to be met exactly, and does not count in
  /// the truth's root mean square; nothing meets a NaN. Of indices of extremes, which one it is
  /// does not count: each that was written is right here.
  ErrorStats compare(const BufferView& output, const Tensor& tensor, const BufferView& truth,
                     const Tolerance& tolerance, double absolute_scale, const Stream& stream) const;

  /// A 64-bit digest of a buffer's content: with the same salt, equal buffers have equal digests.
  /// Who does not know the salt cannot make another buffer with the same.
  std::uint64_t digest(const BufferView& buffer, std::uint64_t salt, const Stream& stream) const;
  /// The same, into a slot of 8 bytes; nobody waits for it.
  void digest_to(const BufferView& slot, const BufferView& buffer, std::uint64_t salt,
                 const Stream& stream) const;

  /// Writes the whole buffer, so that it displaces everything else from the L2 cache.
  void overwrite(const BufferView& buffer, const Stream& stream) const;

  /// Writes the device's nanosecond clock, 8 bytes: after all that the stream had before, and
  /// before all that it gets.
  void stamp(const BufferView& slot, const Stream& stream) const;

  /// One thread that looks at the clock all the time: the longest that it was kept from it, in
  /// nanoseconds.
  std::int64_t longest_pause_ns(std::chrono::nanoseconds duration, const Stream& stream) const;

  /// Copies `to.bytes` with 16-byte accesses, the last ones singly. Both begin at multiples of 16.
  void copy(const BufferView& to, const BufferView& from, const Stream& stream) const;

 private:
  std::int64_t read_counter(const Stream& stream) const;
  void clear_counter(const Stream& stream) const;

  Module module_;
  unsigned blocks_;
  DeviceBuffer counter_;
  DeviceBuffer partials_;
};

}  // namespace rekernel

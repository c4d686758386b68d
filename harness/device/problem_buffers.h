#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/device/device_tools.h"
#include "harness/device/launch.h"
#include "ops/problem.h"

namespace rekernel {

/// Device memory between two bands that hold one byte all over. The upper band begins at the first
/// byte past the buffer, so that a write of the next element is seen.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::int64_t bytes);
  BufferView view() const;
  /// Fills both bands with `guard`.
  void draw_guards(std::uint8_t guard, const Stream& stream);
  /// Bytes of both bands that no longer hold what draw_guards wrote.
  std::int64_t damaged_bytes(const DeviceTools& tools, const Stream& stream) const;

 private:
  BufferView lower_band() const;
  BufferView upper_band() const;

  std::int64_t bytes_;
  std::int64_t upper_band_bytes_;
  DeviceBuffer memory_;
  std::uint8_t guard_ = 0;
};

/// The tensors of a problem and the workspaces of a candidate in device memory, each guarded.
class ProblemBuffers {
 public:
  /// Keeps references to `problem` and `tools`.
  ProblemBuffers(const Problem& problem, const std::vector<Workspace>& workspaces,
                 const DeviceTools& tools);

  /// Tensors and workspaces by name.
  const Bindings& bindings() const { return bindings_; }
  BufferView output() const;

  /// New input values from `seed`; `stress` replaces distributions where given.
  void fill_inputs(std::uint64_t seed, const StressCase* stress, const Stream& stream) const;
  /// Fills the output and all workspaces with `byte`.
  void poison(std::uint8_t byte, const Stream& stream) const;
  /// Fills all guard bands with `guard`. A byte that is drawn for every run cannot be written by
  /// chance every time, nor put back from memory.
  void draw_guards(std::uint8_t guard, const Stream& stream);

  /// The name of the first input that no longer holds what fill_inputs(seed, stress) wrote.
  std::optional<std::string> find_modified_input(std::uint64_t seed, const StressCase* stress,
                                                 const Stream& stream) const;
  /// The name of the first buffer with a damaged guard band.
  std::optional<std::string> find_damaged_guard(const Stream& stream) const;

 private:
  const Problem& problem_;
  const DeviceTools& tools_;
  std::map<std::string, GuardedBuffer> buffers_;
  Bindings bindings_;
};

}  // namespace rekernel

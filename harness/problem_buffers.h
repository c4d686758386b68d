#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/device_tools.h"
#include "harness/launch.h"
#include "ops/problem.h"

namespace rekernel {

/// Device memory between two bands of a known pattern. The upper band begins at the first byte past
/// the buffer, so that a write of the next element is seen.
class GuardedBuffer {
 public:
  GuardedBuffer(std::int64_t bytes, const Stream& stream);
  BufferView view() const;
  /// Bytes of both bands that no longer hold the pattern.
  std::int64_t damaged_bytes(const DeviceTools& tools, const Stream& stream) const;

 private:
  std::int64_t bytes_;
  std::int64_t upper_band_bytes_;
  DeviceBuffer memory_;
};

/// The tensors of a problem and the workspaces of a candidate in device memory, each guarded.
class ProblemBuffers {
 public:
  /// Keeps references to `problem` and `tools`.
  ProblemBuffers(const Problem& problem, const std::vector<Workspace>& workspaces,
                 const DeviceTools& tools, const Stream& stream);

  /// Tensors and workspaces by name.
  const Bindings& bindings() const { return bindings_; }
  BufferView output() const;

  /// New input values from `seed`; `stress` replaces distributions where given.
  void fill_inputs(std::uint64_t seed, const StressCase* stress, const Stream& stream) const;
  /// Fills the output and all workspaces with the poison.
  void poison(const Stream& stream) const;

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

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/device/device_tools.h"
#include "harness/device/launch.h"
#include "harness/device/own_program.h"
#include "harness/gpu/shared_memory.h"
#include "ops/problem.h"

namespace rekernel {

/// What lies round a buffer.
enum class Surroundings {
  /// Before its start, bytes of a known pattern; its end is where an unmapped page begins, but for
  /// what alignment leaves, which holds the pattern too. For verdicts.
  hole,
  /// Bytes of the pattern on both sides: they tell of a stray write which buffer it belonged to,
  /// where a hole would only fault.
  bands,
  /// Nothing: an allocation of exactly its size, as sanitizers want it.
  nothing,
};

/// Device memory whose surroundings tell when something was written there. Lendable to another
/// process, unless nothing surrounds it.
class GuardedBuffer {
 public:
  GuardedBuffer(std::int64_t bytes, Surroundings surroundings);
  BufferView view() const;
  /// Fills all of the surroundings that is mapped with `guard`.
  void draw_guards(std::uint8_t guard, const Stream& stream);
  /// Bytes of the surroundings that no longer hold what draw_guards wrote.
  std::int64_t damaged_bytes(const DeviceTools& tools, const Stream& stream) const;

  /// The allocation, and where in it the buffer begins.
  const DeviceAllocation& allocation() const { return std::get<Lendable>(memory_).allocation; }
  std::int64_t offset() const { return offset_; }

 private:
  struct Lendable {
    DeviceAllocation allocation;
    DeviceMapping mapping;
  };
  static std::variant<Lendable, DeviceBuffer> allocate(std::int64_t bytes,
                                                       Surroundings surroundings);
  std::vector<BufferView> bands() const;

  std::int64_t bytes_;
  std::variant<Lendable, DeviceBuffer> memory_;
  std::int64_t mapped_bytes_;
  std::int64_t offset_;
  std::uint8_t guard_ = 0;
};

/// Buffers by name.
class Buffers {
 public:
  void add(const std::string& name, std::int64_t bytes, Surroundings surroundings);
  const Bindings& bindings() const { return bindings_; }
  const std::map<std::string, GuardedBuffer>& all() const { return buffers_; }

  /// Fills all of them with `byte`.
  void poison(std::uint8_t byte, const Stream& stream) const;
  /// Fills all surroundings with `guard`. A byte that is drawn for every run cannot be written by
  /// chance every time, nor put back from memory.
  void draw_guards(std::uint8_t guard, const Stream& stream);
  /// The name of the first buffer with damaged surroundings.
  std::optional<std::string> find_damaged_guard(const DeviceTools& tools,
                                                const Stream& stream) const;

 private:
  std::map<std::string, GuardedBuffer> buffers_;
  Bindings bindings_;
};

/// A problem's inputs.
class InputBuffers : public Buffers {
 public:
  /// What makes inputs of drawn ones: `Problem::making`, compiled for the device.
  struct Making {
    const CompiledProgram& compiled;
    const DeviceProperties& device;
  };

  /// Keeps references to `problem` and `tools`. `making` may be null where the problem has none.
  InputBuffers(const Problem& problem, const DeviceTools& tools, Surroundings surroundings,
               const Making* making = nullptr);

  /// Fills the buffers of drawn() from a seed, all of it once this returns.
  using ProgramDraws = std::function<void(std::uint64_t seed)>;
  /// Who draws the inputs that the problem's program draws. Needed before they are filled.
  void draw_by(ProgramDraws draws) { program_draws_ = std::move(draws); }
  /// Where it draws them, by their names: fill() copies them from there, so that what is drawn, in
  /// its own time, lies nowhere that a candidate sees.
  const Buffers& drawn() const { return drawn_; }
  /// Has the program draw for the next fill() of this seed, which then takes no time for it.
  void draw_ahead(std::uint64_t seed) const;

  /// New values from `seed`; `stress` replaces distributions where given.
  void fill(std::uint64_t seed, const StressCase* stress, const Stream& stream) const;
  /// The name of the first input that no longer holds what fill(seed, stress), the last of all,
  /// wrote.
  std::optional<std::string> find_modified(std::uint64_t seed, const StressCase* stress,
                                           const Stream& stream) const;

 private:
  bool is_modified(const Tensor& tensor, std::uint64_t seed, const StressCase* stress,
                   const Stream& stream) const;

  const Problem& problem_;
  const DeviceTools& tools_;
  std::optional<OwnProgram> making_;
  ProgramDraws program_draws_;
  Buffers drawn_;
  mutable std::optional<std::uint64_t> drawn_from_;  ///< what lies in `drawn_`
  /// Digests of the inputs that were made: drawing them again would not tell.
  std::map<std::string, DeviceBuffer> digests_;
  std::uint64_t salt_;
};

/// What one subject of an evaluation writes: the problem's outputs, and its own workspaces.
class SubjectBuffers : public Buffers {
 public:
  SubjectBuffers(const Problem& problem, const std::vector<Workspace>& workspaces,
                 Surroundings surroundings);
  /// The problem's outputs by name.
  const Bindings& outputs() const { return outputs_; }

 private:
  Bindings outputs_;
};

}  // namespace rekernel

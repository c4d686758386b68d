#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/gpu/capability.h"

namespace rekernel {

/// What a candidate can be written for. The name stands in plans and is NVRTC's target.
struct Architecture {
  const char* name;
  ComputeCapability capability;
  /// Its code uses what no other chip family has, and runs on this capability alone. Otherwise it
  /// runs on everything newer, too.
  bool family_specific;
  const char* own_instructions;     ///< that need it, for the prompts; empty if there are none
  std::int64_t max_cluster_blocks;  ///< 1: no clusters
  bool tensor_maps;
  /// The least of what the devices that run its code grant a block.
  std::int64_t max_shared_bytes_per_block;
  int max_registers_per_thread;
  int max_threads_per_multiprocessor;
  /// Those of the largest chip on sale that runs its code best: what one thread's local memory
  /// costs.
  int multiprocessors;
};

/// Every architecture, the oldest first. Here alone they are told apart: a new one is one row.
/// Shared memory, clusters and registers: "Technical Specifications per Compute Capability" of the
/// CUDA programming guide, threads of a multiprocessor too; multiprocessors of A100, L40S, H200,
/// B200, B300 and RTX PRO 6000: their data sheets; clusters of 16 where the tuning guides grant
/// them, 8 elsewhere.
inline constexpr Architecture architectures[] = {
    {"sm_80", {8, 0}, false, "", 1, false, 101376, 255, 2048, 108},
    {"sm_89", {8, 9}, false, "", 1, false, 101376, 255, 1536, 142},
    {"sm_90a", {9, 0}, true, "wgmma", 16, true, 232448, 255, 2048, 132},
    {"sm_100a", {10, 0}, true, "tcgen05", 16, true, 232448, 255, 2048, 148},
    {"sm_103a", {10, 3}, true, "tcgen05", 8, true, 232448, 255, 2048, 160},
    {"sm_120a", {12, 0}, true, "block-scaled mma", 8, true, 101376, 255, 1536, 188},
};

/// What the matrix units of one multiprocessor do at most in a clock.
struct MatrixRate {
  ComputeCapability capability;
  std::int64_t fp16_operations;  ///< dense; a multiplication and an addition are two
};

/// By the vendor's sheets, dense FP16 rate ÷ (multiprocessors · boost clock): A100 312 TFLOP/s,
/// 108, 1.41 GHz; A40 150, 84, 1.74; L40S 362, 142, 2.52; H100 SXM 989, 132, 1.83; B200 and B300
/// 2250, 148, 1.85; RTX 5090 419, 170, 2.41. Where products with FP32 sums have half of that
/// (GeForce), those with FP16 sums are meant. A chip that is not here has no such bound.
inline constexpr MatrixRate matrix_rates[] = {
    {{8, 0}, 2048},  {{8, 6}, 1024},  {{8, 9}, 1024},  {{9, 0}, 4096},
    {{10, 0}, 8192}, {{10, 3}, 8192}, {{12, 0}, 1024},
};

/// MatrixRate::fp16_operations; nothing for a capability that the table lacks.
std::optional<std::int64_t> matrix_operations_per_clock(ComputeCapability device);

/// One of the table.
class Arch {
 public:
  /// By its name in the table; another name does not compile.
  consteval Arch(const char* name) : row_(&architectures[0]) {
    while (std::string_view(row_->name) != name) ++row_;  // past the end: not a constant
  }
  const Architecture* operator->() const { return row_; }
  bool operator==(const Arch& other) const { return row_ == other.row_; }

  static std::vector<Arch> all();

 private:
  explicit Arch(const Architecture& row) : row_(&row) {}
  const Architecture* row_;
};

const char* to_string(Arch arch);
std::optional<Arch> arch_from_string(std::string_view text);
/// "sm_80", "sm_89", …: for messages.
std::string known_archs();

bool has_clusters(Arch arch);  ///< and launches that overlap
bool has_tensor_maps(Arch arch);

/// Whether a device of this compute capability runs candidates for `arch`.
bool runs_on(Arch arch, int major, int minor);
/// The architectures whose candidates a device runs, the oldest first.
std::vector<Arch> archs_on(ComputeCapability device);
/// Those of `arch` and of everything in the table that runs its candidates, the oldest first.
std::vector<std::string> targets_of(Arch arch);

/// Threads that a device of this compute capability, or of the nearest older one in the table, can
/// have resident at once.
std::int64_t most_resident_threads(ComputeCapability device);

/// NVRTC's target for a device, in the table or not: "sm_86", "sm_90a".
std::string target_for(ComputeCapability device);
/// What target_for() was given; nothing for other texts.
std::optional<ComputeCapability> capability_of(std::string_view target);

}  // namespace rekernel

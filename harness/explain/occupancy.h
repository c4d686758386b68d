#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/gpu/capability.h"

namespace rekernel {

/// What a multiprocessor has for the blocks that are resident on it.
struct ChipLimits {
  ComputeCapability capability;
  int max_warps = 0;
  int max_blocks = 0;
  std::int64_t registers = 0;     ///< of 32 bits
  std::int64_t shared_bytes = 0;  ///< of all its blocks together
  std::int64_t shared_bytes_per_block = 0;
};

/// "Technical Specifications per Compute Capability" of the CUDA C++ programming guide
/// (docs.nvidia.com/cuda/cuda-programming-guide, compute capabilities). Nothing for a capability
/// that is not in the table.
std::optional<ChipLimits> chip_limits(ComputeCapability capability);

/// What a launch takes of a multiprocessor for each block.
struct BlockUse {
  std::int64_t threads = 0;
  int registers = 0;              ///< of a thread
  std::int64_t shared_bytes = 0;  ///< static and dynamic
};

/// How many blocks of a kernel are resident on a multiprocessor, and why no more.
struct Occupancy {
  int blocks = 0;  ///< 0: not even one fits
  int warps = 0;
  int max_warps = 0;
  std::vector<std::string> limited_by;  ///< of "threads", "registers", "shared memory", "blocks"

  double share() const { return static_cast<double>(warps) / max_warps; }
};

/// The rule of CUDA's occupancy calculator (cuda_occupancy.h): registers are given to warps in
/// units of 256, and a quarter of them belongs to each of four schedulers; shared memory is given
/// in units of 128 bytes, after 1024 that the system keeps for each block. Valid from compute
/// capability 8.0 on. `use` has at least one thread. Clusters and cooperative launches may have
/// less.
Occupancy occupancy(const BlockUse& use, const ChipLimits& limits);

}  // namespace rekernel

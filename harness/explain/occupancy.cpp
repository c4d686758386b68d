#include "harness/explain/occupancy.h"

#include <algorithm>
#include <limits>

namespace rekernel {

namespace {

constexpr std::int64_t warp_threads = 32;
constexpr std::int64_t schedulers = 4;              ///< of a multiprocessor
constexpr std::int64_t register_unit = 256;         ///< given to a warp at a time
constexpr std::int64_t shared_unit = 128;           ///< bytes given to a block at a time
constexpr std::int64_t system_shared_bytes = 1024;  ///< of each block

constexpr std::int64_t kib = 1024;
constexpr std::int64_t all_registers = 64 * kib;

constexpr ChipLimits chips[] = {
    {{8, 0}, 64, 32, all_registers, 164 * kib, 163 * kib},
    {{8, 6}, 48, 16, all_registers, 100 * kib, 99 * kib},
    {{8, 7}, 48, 16, all_registers, 164 * kib, 163 * kib},
    {{8, 9}, 48, 24, all_registers, 100 * kib, 99 * kib},
    {{9, 0}, 64, 32, all_registers, 228 * kib, 227 * kib},
    {{10, 0}, 64, 32, all_registers, 228 * kib, 227 * kib},
    {{10, 3}, 64, 32, all_registers, 228 * kib, 227 * kib},
    {{12, 0}, 48, 24, all_registers, 100 * kib, 99 * kib},
};

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t blocks_by_registers(const BlockUse& use, std::int64_t warps,
                                 const ChipLimits& limits) {
  if (use.registers == 0) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t of_warp = rounded_up(use.registers * warp_threads, register_unit);
  // Warps go to the schedulers in turn, so that a block takes a multiple of them.
  if (of_warp * rounded_up(warps, schedulers) > limits.registers) return 0;
  const std::int64_t warps_of_scheduler = limits.registers / schedulers / of_warp;
  return warps_of_scheduler * schedulers / warps;
}

std::int64_t blocks_by_shared_memory(const BlockUse& use, const ChipLimits& limits) {
  if (use.shared_bytes > limits.shared_bytes_per_block) return 0;
  return limits.shared_bytes / rounded_up(use.shared_bytes + system_shared_bytes, shared_unit);
}

}  // namespace

std::optional<ChipLimits> chip_limits(ComputeCapability capability) {
  for (const ChipLimits& chip : chips) {
    if (chip.capability == capability) return chip;
  }
  return std::nullopt;
}

Occupancy occupancy(const BlockUse& use, const ChipLimits& limits) {
  const std::int64_t warps = rounded_up(use.threads, warp_threads) / warp_threads;
  const std::pair<const char*, std::int64_t> bounds[] = {
      {"threads", limits.max_warps / warps},
      {"registers", blocks_by_registers(use, warps, limits)},
      {"shared memory", blocks_by_shared_memory(use, limits)},
      {"blocks", limits.max_blocks}};
  std::int64_t least = limits.max_blocks;
  for (const auto& [name, blocks] : bounds) least = std::min(least, blocks);
  Occupancy result;
  result.blocks = static_cast<int>(least);
  result.warps = static_cast<int>(least * warps);
  result.max_warps = limits.max_warps;
  for (const auto& [name, blocks] : bounds) {
    if (blocks == least) result.limited_by.emplace_back(name);
  }
  return result;
}

}  // namespace rekernel

#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/profile/launch_metrics.h"

namespace rekernel {

/// What a profiler is asked of each launch, by the names that Nsight Compute and CUPTI share.
/// Checked with `ncu --query-metrics --chips gh100` (and ga100, ad102) of 2024.1. Those that begin
/// with "launch__" and "sm__maximum", and the stalls, come with its sections.
namespace metric {
inline constexpr std::string_view duration = "gpu__time_duration.sum";
inline constexpr std::string_view dram_read = "dram__bytes_read.sum";
inline constexpr std::string_view dram_written = "dram__bytes_write.sum";
inline constexpr std::string_view dram_share = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view l2_sectors_read = "lts__t_sectors_op_read.sum";
inline constexpr std::string_view l2_sectors_written = "lts__t_sectors_op_write.sum";
inline constexpr std::string_view l2_share = "lts__throughput.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view l1_share = "l1tex__throughput.avg.pct_of_peak_sustained_active";
inline constexpr std::string_view sm_share = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view matrix_share =
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed";
inline constexpr std::string_view issue_share =
    "smsp__issue_active.avg.pct_of_peak_sustained_active";
inline constexpr std::string_view occupancy = "sm__warps_active.avg.pct_of_peak_sustained_active";
inline constexpr std::string_view possible_occupancy = "sm__maximum_warps_per_active_cycle_pct";
inline constexpr std::string_view local_loads = "smsp__inst_executed_op_local_ld.sum";
inline constexpr std::string_view local_stores = "smsp__inst_executed_op_local_st.sum";
inline constexpr std::string_view bank_conflicts =
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
inline constexpr std::string_view sectors_per_load =
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio";
inline constexpr std::string_view sectors_per_store =
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio";
inline constexpr std::string_view registers = "launch__registers_per_thread";
inline constexpr std::string_view static_shared = "launch__shared_mem_per_block_static";
inline constexpr std::string_view dynamic_shared = "launch__shared_mem_per_block_dynamic";
inline constexpr std::string_view waves = "launch__waves_per_multiprocessor";
}  // namespace metric

/// A reason for which warps do not issue an instruction.
struct StallReason {
  std::string_view metric;  ///< "long_scoreboard", as in its metric
  std::string_view column;  ///< "long_sb", as in the column of sampled instructions
  std::string_view words;   ///< "waits for global or local memory"
};
/// Those that mean waiting: `selected` is no stall.
std::vector<StallReason> stall_reasons();
/// The metric's name: how many warps a cycle are stalled for this reason, for each issue.
std::string stall_metric(const StallReason& reason);

/// The names that no section has, as --metrics takes them.
std::string counted_metrics();
/// The sections that have the others, by their identifiers.
inline constexpr std::array profile_sections = {"LaunchStats", "Occupancy", "WarpStateStats",
                                                "SourceCounters"};

}  // namespace rekernel

#include "harness/profile/metrics.h"

namespace rekernel {

namespace {

constexpr std::array reasons = {
    StallReason{"long_scoreboard", "long_sb", "waits for global or local memory"},
    StallReason{"short_scoreboard", "short_sb", "waits for shared memory or special functions"},
    StallReason{"barrier", "barrier", "waits at a block's barrier"},
    StallReason{"membar", "membar", "waits at a memory fence"},
    StallReason{"mio_throttle", "mio", "queue of shared memory is full"},
    StallReason{"lg_throttle", "lg", "queue of global memory is full"},
    StallReason{"tex_throttle", "tex", "queue of the texture unit is full"},
    StallReason{"math_pipe_throttle", "math", "arithmetic unit is busy"},
    StallReason{"gmma", "gmma", "waits for the matrix unit"},
    StallReason{"wait", "wait", "fixed latency of the instruction before"},
    StallReason{"no_instruction", "no_inst", "instruction is not in the cache"},
    StallReason{"imc_miss", "imc", "constant is not in the cache"},
    StallReason{"branch_resolving", "branch_resolve", "waits for a branch"},
    StallReason{"dispatch_stall", "dispatch", "dispatcher holds it back"},
    StallReason{"drain", "drain", "stores drain at the end"},
    StallReason{"sleeping", "sleeping", "sleeps"},
    StallReason{"misc", "misc", "other"},
    StallReason{"not_selected", "not_selected", "ready, another warp issues"},
};

constexpr std::array names_of_counts = {
    metric::duration,         metric::dram_read,         metric::dram_written,
    metric::dram_share,       metric::l2_sectors_read,   metric::l2_sectors_written,
    metric::l2_share,         metric::l1_share,          metric::sm_share,
    metric::matrix_share,     metric::issue_share,       metric::occupancy,
    metric::local_loads,      metric::local_stores,      metric::bank_conflicts,
    metric::sectors_per_load, metric::sectors_per_store,
};

}  // namespace

std::vector<StallReason> stall_reasons() { return {reasons.begin(), reasons.end()}; }

std::string stall_metric(const StallReason& reason) {
  return "smsp__average_warps_issue_stalled_" + std::string(reason.metric) +
         "_per_issue_active.ratio";
}

std::string counted_metrics() {
  std::string names;
  for (const std::string_view name : names_of_counts)
    names += (names.empty() ? "" : ",") + std::string(name);
  return names;
}

}  // namespace rekernel

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/records/record.h"
#include "harness/records/table.h"

namespace rekernel {

/// Why a row says nothing of the kernel as it is; empty where it does.
using Staleness = std::function<std::string(const BenchRow&)>;

/// A kernel's place among those of its problem on one device.
struct Standing {
  const BenchRow* row = nullptr;
  int rank = 0;  ///< 1: the fastest that passed; 0: none, since it did not, is stale or unranked
  std::string stale;
  std::string unranked;  ///< why nothing on this device has a rank; empty where it may have one
};

/// The problem's rows, the fastest first, those without a rank last.
std::vector<Standing> standings(const Bench& bench, const std::string& problem,
                                const Staleness& staleness);

/// "39.8% ± 0.4 longer", "3.0% ± 0.4 shorter" or "no difference seen (± 0.5%)": the time of `to` as
/// a share of that of `from`, by the intervals of both medians. Nothing where one of them has no
/// samples.
std::optional<std::string> difference_text(const BenchRow& from, const BenchRow& to);

/// One line for each kernel.
Table standings_table(const std::vector<Standing>& places);
/// The kernels that both have, by problem and name, with the difference from the first to the
/// other.
Table comparison_table(const Bench& from, const Bench& to);

}  // namespace rekernel

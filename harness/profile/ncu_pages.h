#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/profile/launch_metrics.h"
#include "ops/result.h"

namespace rekernel {

/// Comma-separated values with quotes where needed (RFC 4180). An error where a quote is not
/// closed.
Result<std::vector<std::vector<std::string>>> csv_rows(std::string_view text);

/// Of `ncu --import FILE --csv --page raw`: a row of names ("ID", "Kernel Name", …, metrics), a row
/// of units, a row for each launch. Other lines before it are passed over; numbers may have commas
/// between thousands; what is no number ("n/a") is left out. Units become base units.
Result<std::vector<LaunchMetrics>> launches_in(std::string_view raw_page);

/// Of `ncu --import FILE --csv --page source --print-source sass` for one launch: a row of names
/// ("Address", "Source", "Warp Stall Sampling (All Samples)", "stall_…", …), a row for each
/// instruction, in the order of the code.
Result<std::vector<SampledInstruction>> instructions_in(std::string_view source_page);

}  // namespace rekernel

#pragma once

#include <string>
#include <string_view>

namespace rekernel {

/// The name without what tells versions and default streams apart: cuMemcpyDtoHAsync_v2_ptsz.
std::string_view plain_name(std::string_view name);

/// Whether a call of the driver changes nothing that the work on the device could notice:
/// questions, memory and code made ready, waiting. Not a list of what to refuse: what is not known
/// is refused.
bool leaves_no_trace(std::string_view name);

/// Why a call of the driver cannot become part of a plan.
std::string reason_against(std::string_view name);

}  // namespace rekernel

#pragma once

#include <optional>
#include <string_view>

namespace rekernel {

/// What a verdict says of a candidate.
enum class Status {
  passed,
  invalid_plan,
  compile_failed,
  launch_failed,
  timed_out,
  crashed,
  wrong_result,
  out_of_bounds_write,
  modified_input,
  implausible_time,
  forged_time,
};
const char* to_string(Status status);
std::optional<Status> status_from_string(std::string_view text);

}  // namespace rekernel

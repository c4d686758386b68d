#include "harness/candidate/status.h"

#include <array>
#include <cstddef>
#include <utility>

namespace rekernel {

namespace {

constexpr std::array<std::pair<Status, const char*>, 11> status_names{{
    {Status::passed, "passed"},
    {Status::invalid_plan, "invalid_plan"},
    {Status::compile_failed, "compile_failed"},
    {Status::launch_failed, "launch_failed"},
    {Status::timed_out, "timed_out"},
    {Status::crashed, "crashed"},
    {Status::wrong_result, "wrong_result"},
    {Status::out_of_bounds_write, "out_of_bounds_write"},
    {Status::modified_input, "modified_input"},
    {Status::implausible_time, "implausible_time"},
    {Status::forged_time, "forged_time"},
}};

}  // namespace

const char* to_string(Status status) {
  return status_names[static_cast<std::size_t>(status)].second;
}

std::optional<Status> status_from_string(std::string_view text) {
  for (const auto& [status, name] : status_names) {
    if (text == name) return status;
  }
  return std::nullopt;
}

}  // namespace rekernel

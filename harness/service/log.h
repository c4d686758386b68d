#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string_view>

namespace rekernel::service {

/// Told of every event worth a line: its name, and fields. Never a token, never a candidate's code.
using Log = std::function<void(std::string_view event, boost::json::object fields)>;

/// One JSON object a line on standard error, with the time in UTC first.
Log log_to_standard_error();

/// "2026-11-23T01:53:09.123Z"
std::string utc_text(std::int64_t milliseconds_since_1970);
/// By the machine's clock, which may jump: for people, never for deadlines.
std::int64_t now_ms();

}  // namespace rekernel::service

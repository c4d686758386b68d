#include "harness/service/log.h"

#include <boost/json.hpp>
#include <chrono>
#include <ctime>
#include <string>

#include "harness/base/files.h"

namespace rekernel::service {

std::string utc_text(std::int64_t milliseconds) {
  constexpr std::int64_t second = 1000;
  const std::time_t seconds = milliseconds / second;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string thousandths = std::to_string(second + milliseconds % second).substr(1);
  return std::string(text) + "." + thousandths + "Z";
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Log log_to_standard_error() {
  return [](std::string_view event, const boost::json::object& fields) {
    boost::json::object line{{"time", utc_text(now_ms())}, {"event", event}};
    for (const auto& [key, value] : fields) line[key] = value;
    // A log that cannot be written is no reason to stop judging.
    static_cast<void>(write_all(2, boost::json::serialize(line) + "\n"));
  };
}

}  // namespace rekernel::service

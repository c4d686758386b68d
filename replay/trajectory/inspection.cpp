#include "replay/trajectory/inspection.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "replay/trajectory/outcome.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

/// Calls `take` for the events of this name, until it says that it has seen enough.
Result<Ok> for_each_event(const fs::path& path, const std::string& event,
                          const std::function<bool(json::object&)>& take) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return system_error(path, "cannot be opened");
  const std::string beginning = "{\"event\":\"" + event + "\"";
  std::size_t number = 0;
  // Without its newline, a line is being written, or never will be whole.
  for (std::string line; std::getline(file, line) && !file.eof();) {
    ++number;
    if (!line.starts_with(beginning)) continue;
    Result<json::value> value =
        parse_json(line, path.string() + ": line " + std::to_string(number));
    if (!value) return value.error();
    if (!take(value->get_object())) break;
  }
  return Ok{};
}

}  // namespace

Result<std::vector<ModelSettings>> last_endpoints(const fs::path& path,
                                                  const std::vector<ModelSettings>& models) {
  std::optional<json::object> last;
  const Result<Ok> read = for_each_event(path, "endpoints", [&](json::object& event) {
    last = std::move(event);
    return true;
  });
  if (!read) return read.error();
  if (!last) return models;
  return endpoints_from_json(*last, models, path.string());
}

Result<std::string> timed_on(const fs::path& path) {
  std::string device;
  const Result<Ok> read = for_each_event(path, "evaluation", [&](const json::object& found) {
    device = device_in(found);
    return device.empty();
  });
  if (!read) return read.error();
  return device;
}

bool is_being_written(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return locked;
}

}  // namespace rekernel

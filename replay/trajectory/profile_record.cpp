#include "replay/trajectory/profile_record.h"

#include <boost/json.hpp>

#include "replay/trajectory/event.h"

namespace rekernel {

namespace json = boost::json;

namespace {

constexpr std::size_t max_name_bytes = 128;
constexpr std::size_t max_reason_bytes = 400;

/// At most `most` bytes; the mark of a cut takes some of them.
std::string fitting(const std::string& text, std::size_t most) {
  constexpr std::size_t bytes_of_the_mark = 3;
  const std::string shown = printable(text, most);
  return shown.size() <= most ? shown : printable(text, most - bytes_of_the_mark);
}

}  // namespace

json::object profile_event(const std::string& id, const std::string& sha256,
                           const ProfileRecord& profile) {
  json::object event{{"event", "profile"},
                     {"id", id},
                     {"sha256", sha256},
                     {"device", fitting(profile.device, max_name_bytes)},
                     {"tool", fitting(profile.tool, max_name_bytes)}};
  if (profile.unavailable.empty()) {
    event["text"] = fitting(profile.text, max_profile_bytes);
  } else {
    event["unavailable"] = fitting(profile.unavailable, max_reason_bytes);
  }
  return event;
}

Result<ProfileRecord> profile_from_event(const json::object& event, const std::string& where) {
  const json::value value = event;
  JsonReader reader(where, value);
  for (const char* key : {"event", "id", "sha256", "chain"}) reader.optional(key);
  ProfileRecord profile;
  profile.device = reader.required("device").string(max_name_bytes);
  profile.tool = reader.required("tool").string(max_name_bytes);
  if (auto reason = reader.optional("unavailable")) {
    profile.unavailable = reason->string(max_reason_bytes);
    if (profile.unavailable.empty()) reason->expect("why there is no profile");
  } else {
    profile.text = reader.required("text").string(max_profile_bytes);
  }
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return profile;
}

std::string prompt_profile(const ProfileRecord& profile) {
  if (!profile.unavailable.empty()) return "No profile: " + profile.unavailable + "\n";
  std::string text = "What a profiler (" + profile.tool + ") says of it:\n" + profile.text;
  if (!text.ends_with('\n')) text += "\n";
  return text;
}

}  // namespace rekernel

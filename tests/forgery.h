#pragma once

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <string_view>

namespace rekernel {

/// What somebody changes in an honest record, and what must be said of it.
struct Forgery {
  const char* place;      ///< "rows/0/median_ns"
  const char* value;      ///< what is put there, as JSON
  const char* complaint;  ///< the part of the complaint that names the field
};

/// The value at a place; a member that is not there is made.
inline boost::json::value& at(boost::json::value& value, std::string_view place) {
  if (place.empty()) return value;
  const std::size_t end = std::min(place.find('/'), place.size());
  const std::string_view key = place.substr(0, end);
  const std::string_view rest = place.substr(std::min(end + 1, place.size()));
  if (!value.is_array()) return at(value.as_object()[key], rest);
  std::size_t index = 0;
  std::from_chars(key.data(), key.data() + key.size(), index);
  return at(value.as_array().at(index), rest);
}

}  // namespace rekernel

#include "harness/problems/sizes.h"

#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <vector>

#include "harness/base/text.h"

namespace rekernel {

Sizes sizes_of(const Problem& problem) {
  Sizes sizes;
  for (const auto& [axis, range] : problem.other_sizes) sizes[axis] = problem.attribute(axis);
  return sizes;
}

std::string sizes_text(const Sizes& sizes) {
  std::vector<std::string> words;
  for (const auto& [axis, size] : sizes) words.push_back(axis + " " + std::to_string(size));
  return joined(words);
}

boost::json::object to_json(const Sizes& sizes) {
  boost::json::object json;
  for (const auto& [axis, size] : sizes) json[axis] = size;
  return json;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): readers are handed on
Sizes sizes_from_json(JsonReader reader) {
  constexpr std::size_t most_axes = 64;
  Sizes sizes;
  for (auto& [axis, size] : reader.entries(most_axes)) {
    sizes[axis] = size.integer(1, std::numeric_limits<std::int64_t>::max());
  }
  return sizes;
}

}  // namespace rekernel

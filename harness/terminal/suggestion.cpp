#include "harness/terminal/suggestion.h"

#include "harness/base/text.h"

namespace rekernel {

std::vector<std::string> suggestions(std::string_view unknown, std::vector<std::string> names) {
  constexpr std::size_t most = 2;
  std::vector<std::string> found;
  while (found.size() < most) {
    const std::string name = nearest(unknown, names);
    if (name.empty()) break;
    std::erase(names, name);
    found.push_back(name);
  }
  constexpr std::size_t least_beginning = 3;
  if (unknown.size() < least_beginning) return found;
  for (const std::string& name : names) {
    if (found.size() < most && name.starts_with(unknown)) found.push_back(name);
  }
  return found;
}

std::string did_you_mean(std::string_view unknown, std::vector<std::string> names) {
  return did_you_mean(suggestions(unknown, std::move(names)));
}

std::string did_you_mean(const std::vector<std::string>& suggested) {
  if (suggested.empty()) return "";
  return " (did you mean '" + joined(suggested, "' or '") + "'?)";
}

}  // namespace rekernel

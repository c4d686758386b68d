#include "harness/base/text.h"

#include <algorithm>
#include <cstdio>

namespace rekernel {

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string printed(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string counted(std::size_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string time_left(std::chrono::nanoseconds elapsed, std::size_t done, std::size_t total) {
  if (done == 0 || done >= total || elapsed < std::chrono::seconds(2)) return "";
  const double seconds = std::chrono::duration<double>(elapsed).count() *
                         static_cast<double>(total - done) / static_cast<double>(done);
  const double minutes = seconds / 60;
  if (seconds < 100) return "about " + printed("%.0f s left", std::max(1.0, seconds));
  if (minutes < 100) return "about " + printed("%.0f min left", minutes);
  return "about " + printed("%.0f h left", minutes / 60);
}

}  // namespace rekernel

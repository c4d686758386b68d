#include "harness/base/time_left.h"

namespace rekernel {

std::string duration_text(std::chrono::seconds time) {
  const auto seconds = time.count();
  if (seconds < 100) return std::to_string(seconds) + " s";
  const auto minutes = (seconds + 30) / 60;
  if (minutes < 100) return std::to_string(minutes) + " min";
  const std::string hours = std::to_string(minutes / 60) + " h";
  return minutes % 60 == 0 ? hours : hours + " " + std::to_string(minutes % 60) + " min";
}

std::string time_left(std::chrono::nanoseconds elapsed, std::size_t done, std::size_t total) {
  if (done == 0 || done >= total || elapsed < std::chrono::seconds(2)) return "";
  const std::chrono::duration<double> left = std::chrono::duration<double>(elapsed) *
                                             static_cast<double>(total - done) /
                                             static_cast<double>(done);
  return "about " + duration_text(std::chrono::ceil<std::chrono::seconds>(left)) + " left";
}

std::string TimeLeft::text(std::size_t done) const {
  const std::string left = time_left(Clock::now() - start_, done, total_);
  return std::to_string(done) + " of " + std::to_string(total_) + (left.empty() ? "" : ", ") + left;
}

}  // namespace rekernel

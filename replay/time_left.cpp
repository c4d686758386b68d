#include "replay/time_left.h"

namespace rekernel {

std::string duration_text(std::chrono::seconds time) {
  const auto seconds = time.count();
  if (seconds < 100) return std::to_string(seconds) + " s";
  const auto minutes = (seconds + 30) / 60;
  if (minutes < 100) return std::to_string(minutes) + " min";
  return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
}

std::string TimeLeft::text(std::size_t done) const {
  const std::string count = std::to_string(done) + " of " + std::to_string(total_);
  if (done == 0 || done >= total_) return count;
  const auto elapsed = std::chrono::steady_clock::now() - start_;
  const auto left = elapsed / done * (total_ - done);
  return count + ", " + duration_text(std::chrono::ceil<std::chrono::seconds>(left)) + " left";
}

}  // namespace rekernel

#pragma once

#include <chrono>
#include <string>

#include "harness/base/text.h"

namespace rekernel {

struct SlurmTimes {
  std::chrono::milliseconds look{1000};      ///< between two looks for results
  std::chrono::milliseconds query{10'000};   ///< between two questions to the controller
  std::chrono::milliseconds answer{30'000};  ///< that one of Slurm's commands may take
  std::chrono::milliseconds pause{5'000};    ///< after a refusal; doubled up to longest_pause
  std::chrono::milliseconds longest_pause{60'000};
  std::chrono::milliseconds arrival{30'000};  ///< that a result may need after its job's end
};

/// "2.5 s".
inline std::string seconds_text(std::chrono::milliseconds time) {
  return printed("%.3g", static_cast<double>(time.count()) / 1000) + " s";
}

}  // namespace rekernel

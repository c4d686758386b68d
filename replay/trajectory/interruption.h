#pragma once

#include <string>

namespace rekernel {

/// Why a search or a replay cannot go on. What was recorded up to here stays valid.
struct Interruption {
  enum class Kind {
    waiting,   ///< replies or a GPU are missing: the same command goes on once they are there
    mismatch,  ///< the recorded events are not what the search makes of them
    bad_file,  ///< a file cannot be understood
    failed,    ///< the surroundings failed: a server, a disk, a driver
  };
  Kind kind = Kind::failed;
  std::string message;
};

}  // namespace rekernel

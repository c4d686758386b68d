#pragma once

#include <string>

#include "harness/service/store.h"
#include "harness/service/task.h"

namespace rekernel::service {

/// What came of one step of an evaluation.
struct Outcome {
  enum class Kind {
    answer,           ///< a verdict: `answer`
    goes_on,          ///< compiled, and now for a device
    machine_failure,  ///< nothing can be said of the candidate: tried again
    device_lost,      ///< the same, and the device does not answer any more
  };
  Kind kind = Kind::machine_failure;
  Answer answer;
  std::string code;     ///< of a failure: one word for programs
  std::string message;  ///< of a failure, one line
};

/// Who judges. compile() and judge() block, and are called from several threads: compile() from as
/// many as there are cores for it, judge() from as many for each device as it judges at once.
class JudgeBackend {
 public:
  virtual ~JudgeBackend() = default;

  /// How many candidates can be judged at once: GPUs here, or places in a cluster.
  virtual unsigned devices() const = 0;
  /// Why there is none, one line; empty if there is one.
  virtual std::string no_device() const = 0;
  /// What a verdict on this task would carry: it tells whether one from before is as good.
  struct Identity {
    std::string judge;   ///< digest
    std::string device;  ///< the GPU's name, or the compiler's target
  };
  virtual Identity identity(const Task& task) const = 0;

  /// Reads and compiles the candidate. Tier `compile` ends here, and so does what is rejected.
  virtual Outcome compile(const Task& task) = 0;
  /// On one of the devices, from 0.
  virtual Outcome judge(const Task& task, int device) = 0;
  /// Whether a device that failed answers again.
  virtual bool answers(int device) = 0;
};

}  // namespace rekernel::service

#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "harness/evaluation/evaluation.h"
#include "harness/explain/launch_use.h"
#include "harness/service/store.h"
#include "harness/service/task.h"

namespace rekernel::service {

/// What judged: part of every verdict.
struct JudgedBy {
  std::string judge;      ///< digest of what judged (harness_digest())
  std::string device;     ///< "NVIDIA H200"; the target where nothing ran
  std::string toolchain;  ///< "NVRTC 13.0, driver 580.159.04, …"
  bool made_up = false;   ///< by the judge for tests, which looks at nothing
};

/// An evaluation as a verdict: status and first failed check, compiler's errors with their lines,
/// the failing element, errors beside bounds, badges, times, resources, what the launches of the
/// plan take of the chip, and the text for a model.
boost::json::object verdict_json(const Evaluation& evaluation, const Task& task,
                                 const JudgedBy& judged_by,
                                 const std::vector<LaunchUse>& launches = {});

/// The compiler's errors in a message, each once: {"line", "message"}.
boost::json::array compiler_errors(const std::string& message);

/// An answer that is no verdict. `retry`: asking again later may help.
Answer without_verdict(Answer::Kind kind, const std::string& code, const std::string& message,
                       bool retry);

}  // namespace rekernel::service

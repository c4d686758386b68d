#pragma once

#include <boost/json/fwd.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "harness/candidate/candidate.h"
#include "replay/trajectory/interruption.h"
#include "replay/trajectory/profile_record.h"

namespace rekernel {

struct EvaluationRequest {
  std::string id;  ///< "r4.i2.b1"
  const Candidate* candidate = nullptr;
};

/// Where verdicts and times come from.
class Evaluator {
 public:
  /// Called once for every candidate with what recorded_evaluation makes of its evaluation, in any
  /// order but never twice at a time. False: stop.
  using Arrived = std::function<bool(std::size_t index, boost::json::object record)>;

  virtual ~Evaluator() = default;
  /// Judges and times all candidates of a round.
  virtual std::optional<Interruption> evaluate(std::span<const EvaluationRequest> requests,
                                               const Arrived& arrived) = 0;

  /// What a profiler says of a candidate that passed. An interruption where none can be asked.
  virtual std::optional<Interruption> profile(const EvaluationRequest& request,
                                              ProfileRecord& profile);
};

}  // namespace rekernel

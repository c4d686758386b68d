#include "replay/evaluator/evaluator.h"

namespace rekernel {

std::optional<Interruption> Evaluator::profile(const EvaluationRequest& request, ProfileRecord&) {
  return Interruption{Interruption::Kind::waiting,
                      request.id + " waits for a profiler: this launcher has none; expected " +
                          "--launcher local on a machine with a GPU"};
}

}  // namespace rekernel

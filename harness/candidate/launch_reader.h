#pragma once

#include <vector>

#include "harness/base/json.h"
#include "harness/candidate/plan_context.h"
#include "ops/program.h"

namespace rekernel {

/// `launches` of a plan: the steps whose condition holds. `program` has the code already.
std::vector<Step> read_launches(JsonReader reader, PlanContext& context, const Program& program);

}  // namespace rekernel

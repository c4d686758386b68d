#pragma once

#include "harness/base/json.h"
#include "harness/candidate/plan_context.h"
#include "ops/program.h"

namespace rekernel {

/// One argument of a kernel in a plan.
Argument read_argument(JsonReader reader, PlanContext& context);

}  // namespace rekernel

#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// Reads kernel.json, whose code is there, for its problem's own sizes.
Result<Candidate> read_plan(const std::string& where, const boost::json::value& plan,
                            std::vector<Code> modules);

/// Reads `workspace` and `launches` of a plan into the candidate, for a problem at any sizes. The
/// rest of it stands.
Result<Ok> read_plan_for(const Problem& problem, const std::string& where,
                         const boost::json::value& plan, Candidate& candidate);

}  // namespace rekernel

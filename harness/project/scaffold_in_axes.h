#pragma once

#include <optional>
#include <string>

#include "harness/candidate/candidate.h"
#include "ops/problem.h"

namespace rekernel {

/// The slow candidate of a problem with its plan in axes: the same launches at the problem's own
/// sizes. Nothing where its code is for these sizes alone: where long sums are cut into slices or
/// what lies between statements into portions, or where other sizes would need other guards.
std::optional<Candidate> scaffold_in_axes(const Problem& problem, const std::string& name);

}  // namespace rekernel

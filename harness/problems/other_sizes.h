#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/problem.h"

namespace rekernel {

/// How many sizes a candidate in axes is judged at besides its problem's own.
constexpr std::size_t judged_sizes = 6;

/// The problem at sizes within its `other_sizes` and constraints, none twice and none its own, with
/// no more work than at its own sizes: the least ones, edges of the ranges, ones, primes, and any.
/// Fewer where there are no more; none where no axis may vary. Equal seeds give equal sizes.
std::vector<Problem> drawn_instances(const Problem& problem, std::uint64_t seed,
                                     std::size_t count = judged_sizes);

/// The problem at the sizes that are timed beside its own, always the same: every axis at the
/// largest of its other sizes; at the largest power of two among them; at the largest prime up to
/// three quarters of it. Where a constraint does not hold there, or the work would be more than at
/// the problem's own sizes, sizes are drawn below those, from further and further down. Three, or
/// fewer where there are no more.
std::vector<Problem> fixed_instances(const Problem& problem);

}  // namespace rekernel

#pragma once

#include <cstdint>

#include "ops/problem.h"

namespace rekernel {

/// The input that decides by which scale results are judged and how rows look; null where none is
/// of a floating-point type.
const Tensor* first_float_input(const Problem& problem);

/// What `robust` asks for where a problem's file says nothing of its own: each input of a floating-
/// point type scaled down and up, as far as its type allows, all of them constant, the first one
/// zero.
void add_stress_by_rule(Problem& problem);

/// Stress cases in which few elements of the first floating-point input differ from all others: the
/// last element of each row outweighs the others, one element is far out in each row, one row of
/// zeros, one row far from the others' mean. A kernel that looks at some elements to choose how to
/// treat a row does not find them. A row has `row_elements`; 0 stands for the last axis.
void add_uneven_stress(Problem& problem, std::int64_t row_elements);

}  // namespace rekernel

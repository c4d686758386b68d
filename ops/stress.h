#pragma once

#include "ops/problem.h"

namespace rekernel {

/// Adds stress cases in which few elements of the first input differ from all others, by rule from
/// that input's normal distribution: a kernel that looks at some elements to choose how to treat a
/// row does not find them. One element of 200 deviations in each row, one row of zeros, one row far
/// from the others' mean. A row has `row_elements`. Products of rows with operands of 11 bits are
/// off by 2^-11 of the row's mean, which cancels elsewhere: there the row is 50 deviations off, and
/// 1000 where no matrix unit takes part.
void add_uneven_cases(Problem& problem, std::int64_t row_elements);

}  // namespace rekernel

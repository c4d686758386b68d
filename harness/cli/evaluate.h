#pragma once

#include "harness/evaluation/evaluation.h"

namespace rekernel {

/// The verdict on standard output, for a person.
void print_evaluation(const Evaluation& evaluation);

}  // namespace rekernel

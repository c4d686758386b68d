#pragma once

#include <string>

#include "harness/evaluation/evaluation.h"

namespace rekernel {

/// The verdict for a person, in lines: status, badges, errors, resources, times, where the time
/// went.
std::string evaluation_text(const Evaluation& evaluation);

}  // namespace rekernel

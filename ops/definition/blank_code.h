#pragma once

#include "ops/definition/definition.h"
#include "ops/program.h"

namespace rekernel::definition {

/// A kernel with the tensors as parameters, inputs first, that writes nothing, and its launch, a
/// thread for each element of the first output: what a candidate starts from where no statements
/// say what to compute.
Program blank_program(const Definition& definition);

}  // namespace rekernel::definition

#pragma once

#include <string>

#include "ops/definition/definition.h"
#include "ops/program.h"

namespace rekernel::definition {

/// What device code is made for.
enum class Purpose {
  /// The truth: everything in float64; outputs go to buffers of float64, `truth_<name>`.
  truth,
  /// A correct, slow candidate in FP32: outputs in their own types.
  candidate,
  /// Inputs that statements make of drawn ones: in float64, stored in the types of the inputs. The
  /// outputs are called `made_x`, and lie where the input `x` lies.
  inputs,
  /// What must hold of outputs: in float64; tensors are read as the problem's buffers have them,
  /// the
  /// result is one float64, `violation`.
  invariant,
};

/// Device code for all statements of a definition, one launch each, or two for long reductions of
/// few results, which are split into slices with an order of their own: equal in every run. Sizes
/// reach it through `problem.h`; buffers are called as the tensors.
Program device_program(const Definition& definition, Purpose purpose);

}  // namespace rekernel::definition

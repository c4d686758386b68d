#pragma once

#include <string>
#include <vector>

#include "ops/definition/definition.h"

namespace rekernel::definition {

/// A definition with one mistake of a kind that kernels have.
struct DefinitionMutant {
  std::string kind;  ///< "range one short", "operand in BF16", …
  std::string what;  ///< the statement as it became
  Definition definition;
};

/// All single mistakes of these kinds, in the order of the statements: a range one short, every
/// thousandth term of a sum left out, half of a sum in place of the whole, a term dropped, a sign
/// turned, a constant off by a tenth, an operand, a sum or a result in a narrow type, a condition
/// off by one, a choice or a mask left out, another value outside, a neighbour read, zeros, a
/// copied input.
std::vector<DefinitionMutant> definition_mutants(const Definition& definition);

}  // namespace rekernel::definition

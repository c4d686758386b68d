#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/definition/definition.h"

namespace rekernel::definition {

/// Elements by tensor name, row-major; integers and conditions as whole numbers.
using Values = std::map<std::string, std::vector<double>, std::less<>>;

/// Runs the statements on the host in float64, one element after the other: for small sizes. Takes
/// the inputs, returns what every statement defined. A read of an index that was itself read and
/// lies outside of its tensor is a std::out_of_range.
Values interpret(const Definition& definition, const Values& inputs);

/// The same of a single statement of the definition, whose tensors `values` holds.
std::vector<double> interpret(const Definition& definition, const CheckedStatement& statement,
                              const Values& values);

}  // namespace rekernel::definition

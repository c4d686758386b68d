#pragma once

#include <optional>
#include <string>

#include "ops/definition/definition.h"
#include "reference/sum_of_products.h"

namespace rekernel {

/// What an element of an output is, in a form in which equal definitions read alike: what
/// statements define in between is put in, numbers and sizes stand for their names, indices have
/// the names of their places, and sums, products and conjunctions are sorted. Where two outputs
/// have the same form, they are the same function of the inputs; where forms differ, nothing is
/// known. None where a statement reads itself, or what it defines where that is not, and where the
/// form is long.
std::optional<SumOfProducts> normal_form(const definition::Definition& definition,
                                         const std::string& output);

/// The same of an expression in a statement; its indices keep their names.
std::optional<SumOfProducts> normal_form(const definition::Definition& definition,
                                         const definition::Statement& statement,
                                         const definition::Expression& expression);

}  // namespace rekernel

#pragma once

#include <string>
#include <string_view>

#include "ops/definition/expression.h"
#include "ops/result.h"

namespace rekernel::definition {

constexpr std::size_t max_statement_length = 4000;

/// A statement of the grammar in ops/problems/README.md. Errors begin with "column N: " and say
/// what was expected there.
Result<Statement> parse_statement(std::string_view text);

/// An expression alone, as axes, constants and draws have them.
Result<Expression> parse_expression(std::string_view text);

}  // namespace rekernel::definition

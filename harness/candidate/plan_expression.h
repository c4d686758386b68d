#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ops/result.h"

namespace rekernel {

// Integers and conditions of a plan that is written in axes (generated/PLAN.md):
//
//   condition  = conjunction { "or" conjunction }
//   conjunction= negation { "and" negation }
//   negation   = "not" negation | comparison
//   comparison = sum [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) sum ]
//   sum        = term { ( "+" | "-" ) term }
//   term       = factor { ( "*" | "/" | "//" | "%" ) factor }
//   factor     = "-" factor | atom
//   atom       = integer | name | function "(" condition "," condition ")" | "(" condition ")"
//
// Functions are min, max and ceil_div. The language of problems' definitions looks alike, but its
// numbers are real: here `/` and `//` both round down, `%` is never negative for a positive right
// side, and all are 64-bit integers that must not overflow. What stands after an `and` or `or` that
// is decided already is not computed.

/// The values of the names that an expression may have.
using PlanNames = std::map<std::string, std::int64_t, std::less<>>;

constexpr std::size_t max_plan_expression = 1000;

/// Errors begin with "column N: ".
Result<std::int64_t> integer_of(std::string_view expression, const PlanNames& names);
Result<bool> condition_of(std::string_view expression, const PlanNames& names);

/// Whether it is an integer by grammar and names, whatever its value; nothing is computed.
Result<Ok> check_integer(std::string_view expression, const PlanNames& names);
Result<Ok> check_condition(std::string_view expression, const PlanNames& names);

}  // namespace rekernel

#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <string>

#include "ops/result.h"

namespace rekernel::service {

/// How many definitions of its clients' own a service keeps in mind; one more is refused.
inline constexpr std::size_t most_definitions = 4096;

/// Makes known the problem that a client defines in its request (ops/problems/README.md), and gives
/// the id under which this service judges it: the definition's own and its hash, "mine_0123456789".
/// So two clients may call two problems alike, and equal definitions are one problem, whoever asks.
/// Errors: what is wrong with the definition, with its line and column where that is a statement.
Result<std::string> own_problem(const boost::json::object& definition);

}  // namespace rekernel::service

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// Every problem whose file (ops/problems/<group>/<id>.json of this project) can be read, by group,
/// the published ones first, then by number in the benchmark that it comes from, then by id. Files
/// are read at the first call, once.
std::span<const Problem> catalog();

/// The group that stands in the README and the report: its problems have references of libraries,
/// committed kernels and, most of them, published figures.
inline constexpr std::string_view published_group = "published";
std::span<const Problem> published_problems();

/// The groups in the catalog's order.
std::vector<std::string> problem_groups();

/// What is wrong with files that cannot be read, a line each.
std::span<const Error> catalog_errors();

/// Null where there is none. Reads that problem's file alone, at the first call.
const Problem* find_problem(std::string_view id);

/// What to say where find_problem() finds none: why its file cannot be read, or that there is no
/// such file, and which ones are called alike.
Error unknown_problem(std::string_view id);

}  // namespace rekernel

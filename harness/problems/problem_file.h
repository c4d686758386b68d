#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// Sizes of axes that replace those in a problem's file.
using Sizes = std::map<std::string, std::int64_t>;

/// The problem that a file's text says (ops/problems/README.md). Errors begin with `where`, and for
/// statements with the line and column in the text. `id` is what the file is called, `group` its
/// folder. Sizes outside of the file's constraints are an error.
Result<Problem> parse_problem(std::string_view text, const std::string& where,
                              const std::string& id, const std::string& group,
                              const Sizes& sizes = {});

Result<Problem> read_problem(const std::filesystem::path& file);

/// The same problem at other sizes; axes that are not named keep theirs.
Result<Problem> problem_at(const Problem& problem, const Sizes& sizes);

}  // namespace rekernel

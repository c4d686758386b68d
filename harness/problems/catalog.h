#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// Problems are read from this project's ops/problems, if it has such a folder, in place of those
/// of the project that the program was built from. To be called before all that follows.
void read_problems_of(const std::filesystem::path& project);
/// Those that the program was built from come first: a pull request may bring new problems, and
/// does not change those by which it is judged.
void prefer_problems_of_program();

/// Every problem whose file (ops/problems/<group>/<id>.json of the project) can be read, by group,
/// the published ones first, then by number in the benchmark that it comes from, then by id. Files
/// are read at the first call, once. Those that were added before it stand at their group's place.
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

/// The group of problems that were added: they lie in no project's ops/problems, and no project
/// keeps results of theirs.
inline constexpr std::string_view strangers_group = "elsewhere";
bool is_strangers(const Problem& problem);

/// Makes known, to this process, the problem of a file anywhere on disk, or those of a folder's
/// `.json` files. What the project has already is taken from there; another problem of a known id
/// is an error.
Result<std::vector<const Problem*>> add_problems(const std::filesystem::path& file_or_folder);

/// The same for the text of a problem's file, which is, or was made of, `file`.
Result<const Problem*> add_problem_text(const std::string& text, const std::filesystem::path& file);

/// A problem for another process or machine, whatever that finds on disk; empty for an unknown id.
std::string problem_fields(std::string_view id);
/// From now on, this process knows that problem by its id. What find_problem() gave before stays
/// valid.
Result<Ok> adopt_problem(std::string_view fields, const std::string& where);

/// A problem's text under an id that no other text has: its own and a hash, "mine_0123456789".
struct NamedByContent {
  std::string id, text;
};
/// The error says that the definition names no identifier as its `id`.
Result<NamedByContent> named_by_content(boost::json::object definition);

/// problem_digest() of what is judged under this id; zeros where there is none.
std::string digest_of_problem(std::string_view id);

/// What to say where find_problem() finds none: why its file cannot be read, or that there is no
/// such file, and which ones are called alike.
Error unknown_problem(std::string_view id);

}  // namespace rekernel

#include "harness/problems/small_instance.h"

#include <algorithm>
#include <random>
#include <string>

#include "harness/problems/problem_file.h"
#include "ops/inputs.h"

namespace rekernel {

namespace {

constexpr int attempts = 400;

/// Sizes at most `spread` above the least ones.
Sizes drawn_sizes(const Problem& problem, std::int64_t spread, std::mt19937_64& draw) {
  Sizes sizes;
  for (const auto& [axis, range] : problem.other_sizes) {
    const std::int64_t high = std::min(range.second, range.first + spread);
    const auto count = static_cast<std::uint64_t>(high - range.first + 1);
    sizes[axis] = range.first + static_cast<std::int64_t>(draw() % count);
  }
  return sizes;
}

bool is_small(const Problem& problem, SmallerThan limit) {
  // What statements define is in no tensor.
  constexpr std::int64_t as_workspace = 16;
  std::int64_t workspace = 0;
  for (const Workspace& one : problem.device_oracle.workspaces) workspace += one.bytes;
  if (workspace > as_workspace * limit.bytes) return false;
  return problem.operations <= limit.operations && problem.tensor_bytes() <= limit.bytes;
}

}  // namespace

Result<Problem> small_instance(const Problem& problem, SmallerThan limit) {
  if (problem.other_sizes.empty() && is_small(problem, limit)) return problem;
  std::mt19937_64 draw(tensor_stream(problem.id));
  std::string why = "no axis may have another size (\"other_sizes\")";
  for (int attempt = 0; attempt < attempts && !problem.other_sizes.empty(); ++attempt) {
    // Near the least sizes first, where few constraints of divisibility hold; then further up.
    const std::int64_t spread = attempt < attempts / 2 ? 5 : 20;
    Result<Problem> at = problem_at(problem, drawn_sizes(problem, spread, draw));
    if (at && is_small(*at, limit)) return at;
    why = at ? "the smallest of \"other_sizes\" are large" : at.error().message;
  }
  return Error{problem.id + ": no small sizes were found: " + why};
}

}  // namespace rekernel

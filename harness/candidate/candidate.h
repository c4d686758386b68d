#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/candidate/arch.h"
#include "harness/problems/problem_file.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// Where a candidate came from: a candidate id in a recorded search, or a note that says why there
/// is no recording.
struct Origin {
  std::string trajectory;  ///< path from the project's root; empty without a recording
  std::string candidate;   ///< "r4.i2.b1"
  std::string note;
};

/// A kernel that somebody claims something about: device code, launch plan and provenance.
struct Candidate {
  std::string problem;
  std::string name;
  std::string idea;
  Arch arch = "sm_80";  ///< the lowest target
  Origin origin;
  Program program;  ///< with the plan's values at one choice of sizes: see `sizes`
  /// Of a plan in axes, `workspace` and `launches` as they were written, in JSON; else empty.
  std::string written;
  /// For which sizes of its problem `program` is, where they are not the problem's own.
  Sizes sizes;

  /// Whether its plan has expressions of axes, or conditions: then it says what to do at any sizes.
  bool is_in_axes() const { return !written.empty(); }
};

inline constexpr std::size_t max_plan_bytes = 1u << 20;
inline constexpr std::size_t max_source_bytes = 1u << 20;  ///< of CUDA C++

/// Reads and validates `kernel.json` (text) against the problem that it names; `source` is its code
/// in CUDA C++. `where` starts error messages ("generated/softmax/online/kernel.json").
/// Every number is range-checked; unknown keys, tensors and problems are errors.
Result<Candidate> parse_candidate(std::string_view plan_json, std::string source,
                                  const std::string& where);
/// The same with code in any language, in one module or several.
Result<Candidate> parse_candidate(std::string_view plan_json, std::vector<Code> modules,
                                  const std::string& where);

/// Reads `kernel.json` and the code from a candidate folder. None of its files may be a link.
Result<Candidate> load_candidate(const std::filesystem::path& directory);

/// A candidate in axes for its problem at other sizes: source, name and hash stay. The error says
/// which value is wrong, and at which sizes.
Result<Candidate> at_sizes(const Candidate& candidate, const Problem& instance);
/// The same for whoever gets plan, code and sizes from another process; no sizes are the problem's
/// own.
Result<Candidate> parse_candidate_at(const Sizes& sizes, std::string_view plan_json,
                                     std::vector<Code> modules, const std::string& where);

/// The problem that a candidate is for, at its sizes.
Result<std::shared_ptr<const Problem>> problem_of(const Candidate& candidate);

/// The folders below `root`/generated, sorted, as <problem>/<name>.
Result<std::vector<std::filesystem::path>> candidate_directories(const std::filesystem::path& root);

/// `kernel.json` for a candidate; parse_candidate of it gives the same candidate back, for the
/// problem's own sizes.
std::string candidate_json(const Candidate& candidate);

/// SHA-256 over everything that decides what runs (problem, arch, source, compile options, plan),
/// and nothing else: rewording the idea does not invalidate a measurement.
std::string candidate_sha256(const Candidate& candidate);

/// The problem's definition, correct and slow, as a candidate of this name.
Candidate scaffold_candidate(const Problem& problem, const std::string& name);

/// Error unless the source includes allow-listed headers only. Looks at every directive wherever it
/// stands, comments and strings too, so that nothing can hide one. Nor may its words, or those of
/// the macros that the plan defines, add up to one of the compiler's that ask for files.
Result<Ok> check_includes(std::string_view source, const std::string& where,
                          const std::map<std::string, std::string>& defines = {});

}  // namespace rekernel

#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// The lowest target of a candidate: sm_80 and sm_89 run on that and everything newer, sm_90a on
/// that chip family alone.
enum class Arch { sm_80, sm_89, sm_90a };
const char* to_string(Arch arch);
std::optional<Arch> arch_from_string(std::string_view text);
/// Whether a device of this compute capability runs candidates for `arch`.
bool runs_on(Arch arch, int major, int minor);

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
  Arch arch = Arch::sm_80;
  Origin origin;
  Program program;
};

/// Reads and validates `kernel.json` (text) against the problem that it names; `source` is the text
/// of `kernel.cu`. `where` starts error messages ("generated/softmax/online/kernel.json").
/// Every number is range-checked; unknown keys, tensors and problems are errors.
Result<Candidate> parse_candidate(std::string_view plan_json, std::string source,
                                  const std::string& where);

/// Reads `kernel.json` and `kernel.cu` from a candidate folder. Neither may be a link.
Result<Candidate> load_candidate(const std::filesystem::path& directory);

/// The folders below `root`/generated, sorted, as <problem>/<name>.
Result<std::vector<std::filesystem::path>> candidate_directories(const std::filesystem::path& root);

/// `kernel.json` for a candidate; parse_candidate of it gives the same candidate back.
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

#pragma once

#include <boost/json.hpp>

#include <sys/wait.h>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include "harness/base/json.h"
#include "harness/evaluation/evaluation.h"

namespace rekernel {

/// What `rekernel evaluate` prints, and its exit status.
struct Verdict {
  int exit_status = -1;
  std::string output;

  /// The printed record; nothing where the output is no record (a plan that was refused, a set-up
  /// that failed).
  std::optional<Evaluation> evaluation() const {
    Result<boost::json::value> json = parse_json(output, "verdict");
    if (!json) return std::nullopt;
    Result<Evaluation> parsed = evaluation_from_json(JsonReader("verdict", *json));
    if (!parsed) return std::nullopt;
    return std::move(*parsed);
  }
};

/// Judges a candidate folder as a user would: by the program itself, which the build names in
/// REKERNEL_PROGRAM. `options` go to `rekernel evaluate`.
inline Verdict run_evaluate(const std::filesystem::path& folder, const std::string& options) {
  const std::string command = std::string("\"") + REKERNEL_PROGRAM + "\" evaluate \"" +
                              folder.string() + "\" --json " + options + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start " + command);
  Verdict verdict;
  std::array<char, 4096> chunk;
  for (std::size_t count; (count = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) {
    verdict.output.append(chunk.data(), count);
  }
  verdict.exit_status = WEXITSTATUS(::pclose(pipe));
  return verdict;
}

}  // namespace rekernel

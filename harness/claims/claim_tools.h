#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/claims/claims_run.h"
#include "ops/problem.h"

namespace rekernel {

struct ClaimToolsOptions {
  std::filesystem::path sources;
  std::filesystem::path claims_folder;  ///< the file of claims lies in it
  int samples = 60;
  bool pytorch = true;             ///< PyTorch is timed beside the program,
  bool compiled_pytorch = true;    ///< and torch.compile too
  std::filesystem::path recorder;  ///< find_recorder()
  /// For which PyTorch compiles extensions before the GPU is asked, as it would there: "9.0+PTX";
  /// empty: it does not.
  std::string extension_archs;
  std::chrono::seconds compile_deadline{900};
  std::chrono::seconds capture_deadline{300};
};

/// What the placeholders of a claim's commands stand for.
std::map<std::string, std::string> claim_words(const Claim& claim, const ClaimToolsOptions& options,
                                               const std::filesystem::path& source,
                                               const std::filesystem::path& folder);

/// CaptureRequest::compiled of the claim with this folder.
std::filesystem::path claim_compiled(const std::filesystem::path& folder);

/// A command with what its placeholders stand for: {source}, {program}, {sources}, {claims},
/// {marks}, and the axes by their names. An unknown one is an error.
Result<std::vector<std::string>> filled_command(const std::vector<std::string>& command,
                                                const std::map<std::string, std::string>& words);

/// The claim's problem at its sizes, which this process knows from then on. The folders have the
/// problem's file where the claim names one; a program is imported, which takes seconds once.
Result<const Problem*> claimed_problem(const Claim& claim,
                                       const std::filesystem::path& claims_folder,
                                       const std::filesystem::path& sources);

/// Compilers run in the sandbox, without a GPU. A GPU's judge and PyTorch stay from claim to claim.
ClaimTools claim_tools(const ClaimToolsOptions& options);

}  // namespace rekernel

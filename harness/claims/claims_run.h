#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/claims/claims_file.h"
#include "harness/claims/claims_record.h"

namespace rekernel {

/// What is done with one claim, so that a run can be tested without a GPU.
struct ClaimTools {
  /// Makes the program of a source that was written into `folder`, or says why it cannot.
  std::function<Result<std::filesystem::path>(const Claim&, const std::filesystem::path& source,
                                              const std::filesystem::path& folder)>
      build;
  /// Makes a Python program's problem known and has the program compile what it compiles as it is
  /// loaded. The error is about the problem; what fails of the program is seen later. Null: all
  /// that is done when it is captured.
  std::function<Result<Ok>(const Claim&, const std::filesystem::path& program,
                           const std::filesystem::path& folder)>
      prepare = nullptr;
  /// Captures a Python program on a device that nobody measures on meanwhile, for `judge` to judge;
  /// where that fails, `judge` tries again. Null: programs come to that unprepared.
  std::function<void(const Claim&, const std::filesystem::path& program,
                     const std::filesystem::path& folder, int device)>
      rehearse = nullptr;
  /// Captures and judges the program on a device, and fills in the row. Null: programs are only
  /// built.
  std::function<void(const Claim&, const std::filesystem::path& program,
                     const std::filesystem::path& folder, int device, ClaimRow& row)>
      judge;
};

struct ClaimsOptions {
  std::filesystem::path sources;                      ///< that claims' files lie below
  std::filesystem::path work;                         ///< for programs, a folder each
  std::vector<std::string> only;                      ///< names of claims; empty: all
  std::vector<int> devices;                           ///< one program at a time on each
  unsigned compilers = 1;                             ///< at a time
  bool again = false;                                 ///< also what the record has an answer to
  std::function<std::string(const Claim&)> judge_of;  ///< by what it would be judged
  /// Takes the record whenever a row more is there; its error ends the run.
  std::function<Result<Ok>(const ClaimsRecord&)> arrived;
  std::function<void(const std::string&)> say;
};

/// Builds and judges all claims that `record` has no answer to, and returns it with their rows, in
/// the file's order. Programs are compiled while others are judged; where the file has them
/// rehearsed, all are before the first is judged. What fails is a row; an error ends the run.
Result<ClaimsRecord> run_claims(const ClaimsFile& file, ClaimsRecord record,
                                const ClaimsOptions& options, const ClaimTools& tools);

}  // namespace rekernel

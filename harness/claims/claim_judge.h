#pragma once

#include <filesystem>
#include <memory>

#include "harness/claims/claim_tools.h"

namespace rekernel {

/// Captures and judges claims' programs, several threads at a time. What a GPU needs for that, a
/// judge and a PyTorch, stays from claim to claim.
class ClaimJudge {
 public:
  explicit ClaimJudge(ClaimToolsOptions options);
  ~ClaimJudge();

  /// Waits for its turns on the device, and fills in the row.
  void judge(const Claim& claim, const std::filesystem::path& program,
             const std::filesystem::path& folder, int device, ClaimRow& row);
  /// ClaimTools::rehearse: several programs share the device, and nobody else has it. What is
  /// captured so is judged without a word on the program's own time.
  void rehearse(const Claim& claim, const std::filesystem::path& program,
                const std::filesystem::path& folder, int device);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rekernel

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/evaluate.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// References that PyTorch gives, where `python3` can import it: "pytorch_eager" and
/// "pytorch_compile", both with PyTorch's default settings, under which convolutions use TF32. For
/// convolutions also "pytorch_eager_fp32", with TF32 off.
std::vector<std::string> pytorch_reference_ids(std::string_view problem);

/// A `python3` process that times a problem in PyTorch (pytorch.py) and sleeps between blocks, so
/// that blocks can alternate with the harness's own. Destroying it kills the process.
class PytorchReference : public ExternalReference {
 public:
  /// Starts the process and waits until it is warm; `id` is one of pytorch_reference_ids. Errors:
  /// python3, PyTorch or the GPU is missing, PyTorch failed, or the deadline passed (torch.compile
  /// can take a minute).
  static Result<std::unique_ptr<PytorchReference>> start(
      const Problem& problem, const std::string& id, std::chrono::milliseconds startup_deadline,
      std::chrono::milliseconds block_deadline = std::chrono::seconds(60));

  ~PytorchReference() override;
  PytorchReference(const PytorchReference&) = delete;
  PytorchReference& operator=(const PytorchReference&) = delete;

  /// Nanoseconds of `samples` runs, each with new inputs and a cold L2. After an error the process
  /// is of no more use.
  Result<std::vector<std::int64_t>> time_block(int samples, std::uint64_t seed) override;

  /// "2.11.0+cu130"
  const std::string& version() const { return version_; }
  /// "PyTorch 2.11.0+cu130"
  std::string details() const override { return "PyTorch " + version_; }

 private:
  class Process;
  PytorchReference(std::unique_ptr<Process> process, std::chrono::milliseconds block_deadline);

  std::unique_ptr<Process> process_;
  std::chrono::milliseconds block_deadline_;
  std::string version_;
};

}  // namespace rekernel

#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/file_descriptor.h"
#include "harness/evaluation/launcher.h"
#include "harness/evaluation/reference_source.h"
#include "ops/problem.h"
#include "ops/result.h"
#include "reference/sandboxed_python.h"

namespace rekernel {

/// References that PyTorch gives, where `python3` can import it: "pytorch_eager" and
/// "pytorch_compile", both with PyTorch's default settings, under which convolutions use TF32.
/// Where inputs in FP32 go into products or convolutions, "pytorch_eager_fp32" stands before them,
/// with TF32 off. The first is the headline of a problem that no library solves.
std::vector<std::string> pytorch_reference_ids(const Problem& problem);

/// Whose text PyTorch's process runs: the project's, with its owner's files, compilers and caches,
/// or that of strangers' problems too, in the sandbox.
enum class WhoseText { own, strangers };
constexpr WhoseText whose_text(bool is_strangers) {
  return is_strangers ? WhoseText::strangers : WhoseText::own;
}

/// A `python3` that answers questions about problems (pytorch.py), for as many evaluations as one
/// likes: it imports PyTorch once, from its start on, and compiles each function once. Destroying
/// it kills it, with everything that it started.
class PytorchProcess : public ExternalSession {
 public:
  /// Fails where there is no python3.
  static Result<std::unique_ptr<PytorchProcess>> spawn(WhoseText text = WhoseText::own);
  ~PytorchProcess() override;
  PytorchProcess(const PytorchProcess&) = delete;
  PytorchProcess& operator=(const PytorchProcess&) = delete;
  /// The error says that it has ended.
  Result<std::array<int, 2>> descriptors() override;

 private:
  PytorchProcess(FileDescriptor socket, FileDescriptor errors)
      : socket_(std::move(socket)), errors_(std::move(errors)) {}
  Result<Ok> start_alone(const FileDescriptor& theirs);
  Result<Ok> start_in_sandbox(FileDescriptor theirs);

  pid_t pid_ = -1;                            ///< of one that runs alone
  std::optional<SandboxedPython> sandboxed_;  ///< the other kind
  FileDescriptor socket_;
  FileDescriptor errors_;
};

/// Times a problem in a PytorchProcess, which sleeps between blocks, so that blocks can alternate
/// with the harness's own. The process lives on when this is destroyed, for the next evaluation.
class PytorchReference : public ExternalReference {
 public:
  /// Tells the process at the other end of the descriptors, which are this object's from now on,
  /// the problem and waits until it is warm; `id` is one of pytorch_reference_ids. Errors: PyTorch
  /// or the GPU is missing, PyTorch failed, or the deadline passed (torch.compile can take a
  /// minute).
  static Result<std::unique_ptr<PytorchReference>> connect(
      const std::array<int, 2>& descriptors, const Problem& problem, const std::string& id,
      int device, std::chrono::milliseconds startup_deadline,
      std::chrono::milliseconds block_deadline = std::chrono::seconds(60));

  ~PytorchReference() override;
  PytorchReference(const PytorchReference&) = delete;
  PytorchReference& operator=(const PytorchReference&) = delete;

  /// Nanoseconds of `samples` runs, each with new inputs and a cold L2.
  Result<std::vector<std::int64_t>> time_block(int samples, std::uint64_t seed) override;

  /// "2.11.0+cu130"
  const std::string& version() const { return version_; }
  /// "PyTorch 2.11.0+cu130"
  std::string details() const override { return "PyTorch " + version_; }

 private:
  class Conversation;
  PytorchReference(std::unique_ptr<Conversation> conversation,
                   std::chrono::milliseconds block_deadline);

  std::unique_ptr<Conversation> conversation_;
  std::chrono::milliseconds block_deadline_;
  std::string version_;
};

}  // namespace rekernel

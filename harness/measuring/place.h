#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "harness/evaluation/launcher.h"
#include "ops/result.h"
#include "reference/pytorch.h"

namespace rekernel {

/// A GPU on which candidates are evaluated, with a PyTorch of its own where that is timed too. Both
/// stay from candidate to candidate.
class MeasuringPlace {
 public:
  /// `waiting` hears who holds the GPU, up to `patience`; as LocalLauncher takes them.
  explicit MeasuringPlace(int device, std::function<void(const std::string&)> waiting = {},
                          std::optional<std::chrono::seconds> patience = {});

  int device() const { return device_; }

  /// Starts what is not there yet. `pytorch`: whose programs it times, if it is to time any; it
  /// starts again where its process has ended or times others'.
  Result<Ok> begin(std::optional<WhoseText> pytorch);

  /// Has what an evaluation needs of ours begin, if begin() was called.
  void expect_candidates() {
    if (launcher_) launcher_->prepare(device_);
  }

  /// After begin().
  LocalLauncher& launcher() { return *launcher_; }

 private:
  bool is_ready(std::optional<WhoseText> pytorch) const;

  int device_;
  std::function<void(const std::string&)> waiting_;
  std::optional<std::chrono::seconds> patience_;
  std::unique_ptr<PytorchProcess> pytorch_;  ///< outlives the launcher
  std::optional<WhoseText> text_;
  std::unique_ptr<LocalLauncher> launcher_;
};

}  // namespace rekernel

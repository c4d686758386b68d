#include "harness/measuring/place.h"

#include <utility>

namespace rekernel {

MeasuringPlace::MeasuringPlace(int device, std::function<void(const std::string&)> waiting,
                               std::optional<std::chrono::seconds> patience)
    : device_(device), waiting_(std::move(waiting)), patience_(patience) {}

bool MeasuringPlace::is_ready(std::optional<WhoseText> pytorch) const {
  if (!launcher_ || text_ != pytorch) return false;
  return !pytorch_ || pytorch_->descriptors().ok();
}

Result<Ok> MeasuringPlace::begin(std::optional<WhoseText> pytorch) {
  if (is_ready(pytorch)) return Ok{};
  launcher_.reset();
  pytorch_.reset();
  text_ = pytorch;
  if (pytorch) {
    Result<std::unique_ptr<PytorchProcess>> spawned = PytorchProcess::spawn(*pytorch);
    if (!spawned) return spawned.error();
    pytorch_ = std::move(*spawned);
  }
  launcher_ = std::make_unique<LocalLauncher>(pytorch_.get(), waiting_, patience_);
  return Ok{};
}

}  // namespace rekernel

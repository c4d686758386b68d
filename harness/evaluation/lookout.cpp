#include "harness/evaluation/lookout.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>

#include "harness/gpu/exclusive.h"

namespace rekernel {

namespace {

constexpr std::chrono::milliseconds pause_between_looks{200};

/// "process 1234 (python3) holds a context on the GPU (512 MiB)"
std::string context_text(const GpuProcess& process) {
  std::string text = to_text(process) + " holds a context on the GPU";
  if (process.memory_bytes) text += " (" + std::to_string(*process.memory_bytes >> 20) + " MiB)";
  return text;
}

}  // namespace

Lookout::Lookout(const std::string& uuid) {
  Result<GpuMonitor> monitor = GpuMonitor::open(uuid);
  if (!monitor) return;
  monitor_ = std::move(*monitor);
  watcher_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex unused;
    std::unique_lock lock(unused);
    std::condition_variable_any never;
    while (!stop.stop_requested()) {
      never.wait_for(lock, stop, pause_between_looks, [] { return false; });
      if (!stop.stop_requested()) look();
    }
  });
}

void Lookout::begin() {
  const std::lock_guard lock(mutex_);
  others_.clear();
  graphics_.clear();
}

std::optional<std::string> Lookout::other_processes() {
  if (monitor_) look();
  const std::lock_guard lock(mutex_);
  if (others_.empty()) return std::nullopt;
  return others_ +
         ", which may compute at any moment: end it, or give --shared-gpu, whose times are not "
         "recorded";
}

std::vector<std::string> Lookout::graphics() {
  const std::lock_guard lock(mutex_);
  return {graphics_.begin(), graphics_.end()};
}

void Lookout::look() {
  const GpuOccupants present = occupants(*monitor_);
  const pid_t own = ::getpid();
  const std::vector<GpuProcess> foreign = foreign_compute(present, {&own, 1});
  const std::lock_guard lock(mutex_);
  if (others_.empty() && !foreign.empty()) others_ = context_text(foreign.front());
  for (const GpuProcess& process : graphics_only(present)) graphics_.insert(to_text(process));
}

}  // namespace rekernel

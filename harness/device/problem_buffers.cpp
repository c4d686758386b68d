#include "harness/device/problem_buffers.h"

#include "ops/inputs.h"

namespace rekernel {

namespace {

constexpr std::int64_t band_bytes = 1 << 20;
constexpr std::int64_t alignment = 1024;

const Distribution& distribution_of(const Tensor& tensor, const StressCase* stress) {
  if (stress) {
    if (auto found = stress->inputs.find(tensor.name); found != stress->inputs.end()) {
      return found->second;
    }
  }
  return tensor.distribution;
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::int64_t bytes)
    : bytes_(bytes),
      upper_band_bytes_((bytes + alignment - 1) / alignment * alignment - bytes + band_bytes),
      memory_(band_bytes + bytes + upper_band_bytes_) {}

BufferView GuardedBuffer::view() const {
  return {memory_.get() + static_cast<CUdeviceptr>(band_bytes), bytes_};
}

BufferView GuardedBuffer::lower_band() const { return {memory_.get(), band_bytes}; }

BufferView GuardedBuffer::upper_band() const {
  return {view().pointer + static_cast<CUdeviceptr>(bytes_), upper_band_bytes_};
}

void GuardedBuffer::draw_guards(std::uint8_t guard, const Stream& stream) {
  guard_ = guard;
  for (const BufferView& band : {lower_band(), upper_band()}) {
    REKERNEL_CUDA(
        cuMemsetD8Async(band.pointer, guard_, static_cast<std::size_t>(band.bytes), stream.get()));
  }
}

std::int64_t GuardedBuffer::damaged_bytes(const DeviceTools& tools, const Stream& stream) const {
  return tools.count_other_bytes(lower_band(), guard_, stream) +
         tools.count_other_bytes(upper_band(), guard_, stream);
}

ProblemBuffers::ProblemBuffers(const Problem& problem, const std::vector<Workspace>& workspaces,
                               const DeviceTools& tools)
    : problem_(problem), tools_(tools) {
  for (const Tensor& tensor : problem.tensors) {
    buffers_.try_emplace(tensor.name, tensor.bytes());
  }
  for (const Workspace& workspace : workspaces) {
    buffers_.try_emplace(workspace.name, workspace.bytes);
  }
  for (const auto& [name, buffer] : buffers_) bindings_[name] = buffer.view();
}

BufferView ProblemBuffers::output() const { return bindings_.at(problem_.output().name); }

void ProblemBuffers::fill_inputs(std::uint64_t seed, const StressCase* stress,
                                 const Stream& stream) const {
  for (const Tensor& tensor : problem_.tensors) {
    if (tensor.role != Role::input) continue;
    tools_.fill(bindings_.at(tensor.name), tensor.dtype, distribution_of(tensor, stress), seed,
                tensor_stream(tensor.name), stream);
  }
}

void ProblemBuffers::poison(std::uint8_t byte, const Stream& stream) const {
  for (const auto& [name, view] : bindings_) {
    const Tensor* tensor = problem_.find_tensor(name);
    if (tensor && tensor->role == Role::input) continue;
    REKERNEL_CUDA(
        cuMemsetD8Async(view.pointer, byte, static_cast<std::size_t>(view.bytes), stream.get()));
  }
}

void ProblemBuffers::draw_guards(std::uint8_t guard, const Stream& stream) {
  for (auto& [name, buffer] : buffers_) buffer.draw_guards(guard, stream);
}

std::optional<std::string> ProblemBuffers::find_modified_input(std::uint64_t seed,
                                                               const StressCase* stress,
                                                               const Stream& stream) const {
  for (const Tensor& tensor : problem_.tensors) {
    if (tensor.role != Role::input) continue;
    if (tools_.count_input_mismatches(bindings_.at(tensor.name), tensor.dtype,
                                      distribution_of(tensor, stress), seed,
                                      tensor_stream(tensor.name), stream) != 0) {
      return tensor.name;
    }
  }
  return std::nullopt;
}

std::optional<std::string> ProblemBuffers::find_damaged_guard(const Stream& stream) const {
  for (const auto& [name, buffer] : buffers_) {
    if (buffer.damaged_bytes(tools_, stream) != 0) return name;
  }
  return std::nullopt;
}

}  // namespace rekernel

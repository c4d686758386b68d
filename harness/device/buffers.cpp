#include "harness/device/buffers.h"

#include <random>
#include <stdexcept>
#include <utility>

#include "ops/inputs.h"

namespace rekernel {

namespace {

constexpr std::int64_t band_bytes = 1 << 20;
/// As of cudaMalloc, and what tensor maps ask for.
constexpr std::int64_t alignment = 1024;

std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// From the operating system: nobody foresees it.
std::uint64_t random_word() {
  std::random_device entropy;
  return std::uint64_t{entropy()} << 32 | entropy();
}

const Distribution& distribution_of(const Tensor& tensor, const StressCase* stress) {
  if (stress) {
    if (auto found = stress->inputs.find(tensor.name); found != stress->inputs.end()) {
      return found->second;
    }
  }
  return tensor.distribution;
}

}  // namespace

std::variant<GuardedBuffer::Lendable, DeviceBuffer> GuardedBuffer::allocate(
    std::int64_t bytes, Surroundings surroundings) {
  if (surroundings == Surroundings::nothing) return DeviceBuffer(bytes);
  const int bands = surroundings == Surroundings::bands ? 2 : 1;
  DeviceAllocation allocation = DeviceAllocation::create(aligned(bytes) + bands * band_bytes);
  DeviceMapping mapping(allocation, Access::read_and_write);
  return Lendable{std::move(allocation), std::move(mapping)};
}

GuardedBuffer::GuardedBuffer(std::int64_t bytes, Surroundings surroundings)
    : bytes_(bytes), memory_(allocate(bytes, surroundings)), mapped_bytes_(bytes), offset_(0) {
  if (surroundings == Surroundings::nothing) return;
  mapped_bytes_ = allocation().bytes();
  offset_ = surroundings == Surroundings::bands ? band_bytes : mapped_bytes_ - aligned(bytes);
}

BufferView GuardedBuffer::view() const {
  if (const auto* plain = std::get_if<DeviceBuffer>(&memory_)) return {plain->get(), bytes_};
  return {std::get<Lendable>(memory_).mapping.begin() + static_cast<CUdeviceptr>(offset_), bytes_};
}

std::vector<BufferView> GuardedBuffer::bands() const {
  const CUdeviceptr begin = view().pointer;
  const std::int64_t behind = mapped_bytes_ - offset_ - bytes_;
  std::vector<BufferView> bands;
  if (offset_ > 0) bands.push_back({begin - static_cast<CUdeviceptr>(offset_), offset_});
  if (behind > 0) bands.push_back({begin + static_cast<CUdeviceptr>(bytes_), behind});
  return bands;
}

void GuardedBuffer::draw_guards(std::uint8_t guard, const Stream& stream) {
  guard_ = guard;
  for (const BufferView& band : bands()) {
    REKERNEL_CUDA(
        cuMemsetD8Async(band.pointer, guard_, static_cast<std::size_t>(band.bytes), stream.get()));
  }
}

std::int64_t GuardedBuffer::damaged_bytes(const DeviceTools& tools, const Stream& stream) const {
  std::int64_t damaged = 0;
  for (const BufferView& band : bands()) damaged += tools.count_other_bytes(band, guard_, stream);
  return damaged;
}

void Buffers::add(const std::string& name, std::int64_t bytes, Surroundings surroundings) {
  const auto [added, is_new] = buffers_.try_emplace(name, bytes, surroundings);
  if (is_new) bindings_[name] = added->second.view();
}

void Buffers::poison(std::uint8_t byte, const Stream& stream) const {
  for (const auto& [name, view] : bindings_) {
    REKERNEL_CUDA(
        cuMemsetD8Async(view.pointer, byte, static_cast<std::size_t>(view.bytes), stream.get()));
  }
}

void Buffers::draw_guards(std::uint8_t guard, const Stream& stream) {
  for (auto& [name, buffer] : buffers_) buffer.draw_guards(guard, stream);
}

std::optional<std::string> Buffers::find_damaged_guard(const DeviceTools& tools,
                                                       const Stream& stream) const {
  for (const auto& [name, buffer] : buffers_) {
    if (buffer.damaged_bytes(tools, stream) != 0) return name;
  }
  return std::nullopt;
}

InputBuffers::InputBuffers(const Problem& problem, const DeviceTools& tools,
                           Surroundings surroundings, const Making* making)
    : problem_(problem), tools_(tools), salt_(random_word()) {
  for (const Tensor* tensor : problem.inputs()) {
    add(tensor->name, tensor->bytes(), surroundings);
    if (tensor->is_made) digests_.try_emplace(tensor->name, std::int64_t{sizeof(std::uint64_t)});
    if (problem.program && problem.program->draws_input(tensor->name)) {
      drawn_.add(tensor->name, tensor->bytes(), surroundings);
    }
  }
  if (problem.making.steps.empty()) return;
  if (!making) throw std::logic_error("InputBuffers: " + problem.id + " has inputs to make");
  making_.emplace(problem.making, making->compiled, bindings(), making->device);
}

void InputBuffers::draw_ahead(std::uint64_t seed) const {
  if (drawn_.all().empty() || drawn_from_ == seed) return;
  if (!program_draws_) throw std::logic_error("InputBuffers: nobody draws for " + problem_.id);
  drawn_from_.reset();
  program_draws_(seed);
  drawn_from_ = seed;
}

void InputBuffers::fill(std::uint64_t seed, const StressCase* stress, const Stream& stream) const {
  draw_ahead(seed);
  for (const Tensor* tensor : problem_.inputs()) {
    const auto drawn = drawn_.bindings().find(tensor->name);
    const bool is_stressed = stress && stress->inputs.contains(tensor->name);
    if (drawn != drawn_.bindings().end() && !is_stressed) {
      tools_.copy(bindings().at(tensor->name), drawn->second, stream);
      continue;
    }
    tools_.fill(bindings().at(tensor->name), tensor->dtype, distribution_of(*tensor, stress), seed,
                tensor_stream(tensor->name), stream);
  }
  if (making_) making_->enqueue(stream);
  for (const auto& [name, digest] : digests_) {
    tools_.digest_to({digest.get(), digest.bytes()}, bindings().at(name), salt_, stream);
  }
}

bool InputBuffers::is_modified(const Tensor& tensor, std::uint64_t seed, const StressCase* stress,
                               const Stream& stream) const {
  const BufferView view = bindings().at(tensor.name);
  if (!tensor.is_made) {
    return tools_.count_input_mismatches(view, tensor.dtype, distribution_of(tensor, stress), seed,
                                         tensor_stream(tensor.name), stream) != 0;
  }
  const std::uint64_t now = tools_.digest(view, salt_, stream);
  std::uint64_t filled = 0;
  REKERNEL_CUDA(cuMemcpyDtoH(&filled, digests_.at(tensor.name).get(), sizeof filled));
  return now != filled;
}

std::optional<std::string> InputBuffers::find_modified(std::uint64_t seed, const StressCase* stress,
                                                       const Stream& stream) const {
  for (const Tensor* tensor : problem_.inputs()) {
    if (is_modified(*tensor, seed, stress, stream)) return tensor->name;
  }
  return std::nullopt;
}

SubjectBuffers::SubjectBuffers(const Problem& problem, const std::vector<Workspace>& workspaces,
                               Surroundings surroundings) {
  for (const Tensor* output : problem.outputs()) {
    add(output->name, output->bytes(), surroundings);
    outputs_[output->name] = bindings().at(output->name);
  }
  for (const Workspace& workspace : workspaces) add(workspace.name, workspace.bytes, surroundings);
}

}  // namespace rekernel

#include "harness/device/launch.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace rekernel {

namespace {

/// One kernel argument by value. The driver copies it, so it needs no alignment of its own.
struct ArgumentBytes {
  std::string bytes;

  template <class T>
  static ArgumentBytes of(const T& value) {
    return {std::string(reinterpret_cast<const char*>(&value), sizeof value)};
  }
};

struct PreparedLaunch {
  CUfunction function = nullptr;
  CUlaunchConfig config{};
  std::vector<CUlaunchAttribute> attributes;
  std::vector<ArgumentBytes> arguments;
  std::vector<void*> pointers;
};

struct PreparedMemset {
  CUdeviceptr pointer = 0;
  std::size_t bytes = 0;
  std::uint8_t value = 0;
};

using PreparedStep = std::variant<PreparedLaunch, PreparedMemset>;

class PreparedProgram : public Runnable {
 public:
  PreparedProgram(std::vector<Module> modules, std::vector<PreparedStep> steps)
      : modules_(std::move(modules)), steps_(std::move(steps)) {}

  void enqueue(CUstream stream) override {
    for (PreparedStep& step : steps_) {
      if (auto* memset = std::get_if<PreparedMemset>(&step)) {
        REKERNEL_CUDA(cuMemsetD8Async(memset->pointer, memset->value, memset->bytes, stream));
      } else {
        auto& launch = std::get<PreparedLaunch>(step);
        launch.config.hStream = stream;
        REKERNEL_CUDA(
            cuLaunchKernelEx(&launch.config, launch.function, launch.pointers.data(), nullptr));
      }
    }
  }

 private:
  std::vector<Module> modules_;
  std::vector<PreparedStep> steps_;
};

CUtensorMapDataType tensor_map_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::f32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::f64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case DType::u8:
    case DType::i8:
    case DType::boolean:
    case DType::f8e4m3:
    case DType::f8e5m2:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;  // what a byte means, a copy need not know
    case DType::i32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::i64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
  }
  throw std::logic_error("unknown dtype");
}

CUtensorMapSwizzle tensor_map_swizzle(TensorMapArgument::Swizzle swizzle) {
  switch (swizzle) {
    case TensorMapArgument::Swizzle::none:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
    case TensorMapArgument::Swizzle::b32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case TensorMapArgument::Swizzle::b64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case TensorMapArgument::Swizzle::b128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
  }
  throw std::logic_error("unknown swizzle");
}

CUtensorMapL2promotion tensor_map_promotion(TensorMapArgument::L2Promotion promotion) {
  switch (promotion) {
    case TensorMapArgument::L2Promotion::none:
      return CU_TENSOR_MAP_L2_PROMOTION_NONE;
    case TensorMapArgument::L2Promotion::b64:
      return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
    case TensorMapArgument::L2Promotion::b128:
      return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    case TensorMapArgument::L2Promotion::b256:
      return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  }
  throw std::logic_error("unknown L2 promotion");
}

Result<ArgumentBytes> encode_tensor_map(const TensorMapArgument& map, const BufferView& buffer) {
  const std::size_t rank = map.dims.size();
  std::vector<cuuint64_t> dims(map.dims.begin(), map.dims.end());
  std::vector<cuuint64_t> strides(map.strides_bytes.begin(), map.strides_bytes.end());
  std::vector<cuuint32_t> box(map.box.begin(), map.box.end());
  std::vector<cuuint32_t> element_strides(map.element_strides.begin(), map.element_strides.end());
  if (element_strides.empty()) element_strides.assign(rank, 1);

  CUtensorMap encoded{};
  const CUresult result = driver().cuTensorMapEncodeTiled(
      &encoded, tensor_map_type(map.dtype), static_cast<cuuint32_t>(rank),
      reinterpret_cast<void*>(buffer.pointer + static_cast<CUdeviceptr>(map.offset_bytes)),
      dims.data(), strides.data(), box.data(), element_strides.data(),
      CU_TENSOR_MAP_INTERLEAVE_NONE, tensor_map_swizzle(map.swizzle),
      tensor_map_promotion(map.l2_promotion),
      map.fill_nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                   : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    return Error{"tensor map of '" + map.buffer +
                 "': the driver refuses this combination of dims, "
                 "strides, box and swizzle"};
  }
  return ArgumentBytes::of(encoded);
}

Result<ArgumentBytes> patched(const BytesArgument& argument, const Bindings& bindings) {
  std::string bytes = argument.bytes;
  for (const BytesArgument::Address& address : argument.addresses) {
    const CUdeviceptr pointer =
        bindings.at(address.buffer).pointer + static_cast<CUdeviceptr>(address.offset_bytes);
    std::memcpy(bytes.data() + address.at, &pointer, sizeof pointer);
  }
  for (const auto& [at, map] : argument.tensor_maps) {
    Result<ArgumentBytes> encoded = encode_tensor_map(map, bindings.at(map.buffer));
    if (!encoded) return encoded;
    bytes.replace(static_cast<std::size_t>(at), encoded->bytes.size(), encoded->bytes);
  }
  return ArgumentBytes{std::move(bytes)};
}

PreparedMemset prepare_memset(const Memset& memset, const Bindings& bindings) {
  const BufferView& buffer = bindings.at(memset.buffer);
  const std::int64_t bytes = memset.bytes ? memset.bytes : buffer.bytes - memset.offset_bytes;
  return {buffer.pointer + static_cast<CUdeviceptr>(memset.offset_bytes),
          static_cast<std::size_t>(bytes), memset.value};
}

Result<ArgumentBytes> resolve_argument(const Argument& argument, const Bindings& bindings) {
  if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
    return ArgumentBytes::of(bindings.at(buffer->buffer).pointer);
  }
  if (const auto* scalar = std::get_if<ScalarArgument>(&argument)) {
    return std::visit([](auto value) { return ArgumentBytes::of(value); }, *scalar);
  }
  if (const auto* bytes = std::get_if<BytesArgument>(&argument)) {
    return patched(*bytes, bindings);
  }
  const auto& map = std::get<TensorMapArgument>(argument);
  return encode_tensor_map(map, bindings.at(map.buffer));
}

int function_attribute(CUfunction function, CUfunction_attribute attribute) {
  int value = 0;
  REKERNEL_CUDA(cuFuncGetAttribute(&value, attribute, function));
  return value;
}

/// Raises the function's limits to what the launch asks for.
Result<Ok> configure_function(CUfunction function, const KernelLaunch& launch,
                              const DeviceProperties& device) {
  const std::int64_t block = launch.block[0] * launch.block[1] * launch.block[2];
  const int largest_block = function_attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  if (block > largest_block) {
    return Error{"a block of " + std::to_string(block) + " threads: expected at most " +
                 std::to_string(largest_block) + " at the registers that the kernel uses"};
  }
  const std::int64_t static_shared =
      function_attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  const std::int64_t available = device.shared_bytes_per_block - static_shared;
  if (launch.dynamic_shared_bytes > available) {
    return Error{"dynamic_shared_bytes " + std::to_string(launch.dynamic_shared_bytes) +
                 ": expected at most " + std::to_string(available) + " on " + device.name};
  }
  // An earlier launch of the kernel may have asked for more.
  constexpr auto limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  if (launch.dynamic_shared_bytes > function_attribute(function, limit)) {
    REKERNEL_CUDA(
        cuFuncSetAttribute(function, limit, static_cast<int>(launch.dynamic_shared_bytes)));
  }
  constexpr std::int64_t portable_cluster = 8;
  if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > portable_cluster) {
    REKERNEL_CUDA(
        cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  }
  return Ok{};
}

std::int64_t resident_blocks_per_sm(CUfunction function, const KernelLaunch& launch) {
  int blocks = 0;
  REKERNEL_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, function, static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]),
      static_cast<std::size_t>(launch.dynamic_shared_bytes)));
  return blocks;
}

/// A grid that follows the device's size and must be resident as a whole takes as many blocks a
/// multiprocessor as fit, up to the number in the plan.
KernelLaunch fitted_to_device(KernelLaunch launch, CUfunction function) {
  GridExtent& extent = launch.grid[0];
  if (!launch.cooperative || !extent.per_sm) return launch;
  const std::int64_t others = launch.grid[1].count * launch.grid[2].count;
  const std::int64_t fitting = resident_blocks_per_sm(function, launch) / others;
  extent.count = std::max<std::int64_t>(1, std::min(extent.count, fitting));
  return launch;
}

Result<Ok> check_all_resident(CUfunction function, const KernelLaunch& launch,
                              const CUlaunchConfig& config, const DeviceProperties& device) {
  const std::int64_t resident = resident_blocks_per_sm(function, launch) * device.multiprocessors;
  const std::int64_t blocks = std::int64_t{config.gridDimX} * config.gridDimY * config.gridDimZ;
  if (blocks > resident) {
    return Error{"a cooperative grid of " + std::to_string(blocks) + " blocks: expected at most " +
                 std::to_string(resident) + ", all that fit on " + device.name + " at once"};
  }
  return Ok{};
}

Result<CUlaunchConfig> launch_config(const KernelLaunch& launch, const DeviceProperties& device) {
  std::array<std::int64_t, 3> grid{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const GridExtent& extent = launch.grid[axis];
    grid[axis] = extent.per_sm ? extent.count * device.multiprocessors : extent.count;
    if (grid[axis] % launch.cluster[axis] != 0) {
      // A grid that follows the device's size is rounded down to whole clusters.
      if (!extent.per_sm || grid[axis] < launch.cluster[axis]) {
        return Error{"grid extent " + std::to_string(grid[axis]) +
                     ": expected a multiple of the "
                     "cluster extent " +
                     std::to_string(launch.cluster[axis])};
      }
      grid[axis] -= grid[axis] % launch.cluster[axis];
    }
  }
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(grid[0]);
  config.gridDimY = static_cast<unsigned>(grid[1]);
  config.gridDimZ = static_cast<unsigned>(grid[2]);
  config.blockDimX = static_cast<unsigned>(launch.block[0]);
  config.blockDimY = static_cast<unsigned>(launch.block[1]);
  config.blockDimZ = static_cast<unsigned>(launch.block[2]);
  config.sharedMemBytes = static_cast<unsigned>(launch.dynamic_shared_bytes);
  return config;
}

std::vector<CUlaunchAttribute> launch_attributes(const KernelLaunch& launch) {
  std::vector<CUlaunchAttribute> attributes;
  if (launch.cluster != std::array<std::int64_t, 3>{1, 1, 1}) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = static_cast<unsigned>(launch.cluster[0]);
    attribute.value.clusterDim.y = static_cast<unsigned>(launch.cluster[1]);
    attribute.value.clusterDim.z = static_cast<unsigned>(launch.cluster[2]);
    attributes.push_back(attribute);
  }
  if (launch.cooperative) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    attributes.push_back(attribute);
  }
  if (launch.programmatic_launch) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    attributes.push_back(attribute);
  }
  if (launch.shared_memory_carveout) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    attribute.value.sharedMemCarveout = static_cast<unsigned>(*launch.shared_memory_carveout);
    attributes.push_back(attribute);
  }
  return attributes;
}

Result<PreparedLaunch> prepare_launch(const KernelLaunch& launch, const Module& module,
                                      const Bindings& bindings, const DeviceProperties& device) {
  const std::string where = "kernel '" + launch.kernel + "': ";
  PreparedLaunch prepared;
  prepared.function = module.function(launch.kernel);
  if (Result<Ok> configured = configure_function(prepared.function, launch, device); !configured) {
    return Error{where + configured.error().message};
  }
  Result<CUlaunchConfig> config =
      launch_config(fitted_to_device(launch, prepared.function), device);
  if (!config) return Error{where + config.error().message};
  prepared.config = *config;
  if (launch.cooperative) {
    Result<Ok> fits = check_all_resident(prepared.function, launch, *config, device);
    if (!fits) return Error{where + fits.error().message};
  }
  prepared.attributes = launch_attributes(launch);
  for (const Argument& argument : launch.args) {
    Result<ArgumentBytes> bytes = resolve_argument(argument, bindings);
    if (!bytes) return Error{where + bytes.error().message};
    prepared.arguments.push_back(*bytes);
  }
  return prepared;
}

/// The launch structures point into themselves, so they are tied together once they no longer move.
void tie_pointers(std::vector<PreparedStep>& steps) {
  for (PreparedStep& step : steps) {
    if (auto* launch = std::get_if<PreparedLaunch>(&step)) {
      launch->config.attrs = launch->attributes.data();
      launch->config.numAttrs = static_cast<unsigned>(launch->attributes.size());
      for (ArgumentBytes& argument : launch->arguments) {
        launch->pointers.push_back(argument.bytes.data());
      }
    }
  }
}

}  // namespace

Result<std::unique_ptr<Runnable>> make_runnable(const Program& program,
                                                const CompiledProgram& compiled,
                                                const Bindings& bindings,
                                                const DeviceProperties& device) {
  std::vector<Module> modules;
  modules.emplace_back(compiled.cubin);
  for (const CompiledProgram& further : compiled.modules) modules.emplace_back(further.cubin);
  std::vector<PreparedStep> steps;
  for (const Step& step : program.steps) {
    if (const auto* memset = std::get_if<Memset>(&step)) {
      steps.push_back(prepare_memset(*memset, bindings));
      continue;
    }
    KernelLaunch planned = std::get<KernelLaunch>(step);
    // What runs before the first step is the harness's own, and the plan may not overlap with it.
    if (steps.empty()) planned.programmatic_launch = false;
    const Module& module = modules.at(static_cast<std::size_t>(planned.module));
    Result<PreparedLaunch> launch = prepare_launch(planned, module, bindings, device);
    if (!launch) return launch.error();
    steps.push_back(std::move(*launch));
  }
  tie_pointers(steps);
  return std::unique_ptr<Runnable>(
      std::make_unique<PreparedProgram>(std::move(modules), std::move(steps)));
}

}  // namespace rekernel

#include "harness/device/device_tools.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "ops/inputs.h"

namespace rekernel {

namespace {

constexpr unsigned block_size = 256;
constexpr unsigned blocks_per_sm = 8;

/// What one block of `compare_*` found. Mirrored in the device source below.
struct ComparePartial {
  double max_abs;
  double error_squares;
  double truth_squares;
  double worst_tolerance_ratio;
  double worst_strict_ratio;
  unsigned long long failing;
  unsigned long long unwritten;
  unsigned long long first_failing;
};

/// What `compare_*` compares with. Mirrored as well.
struct CompareBounds {
  double absolute;
  double relative;
  double strict_absolute;
  double strict_relative;
  int only_written;  ///< an element that was written is right
};

constexpr const char* tools_source = R"cuda(
namespace exact = rekernel::exact;

struct CompareBounds {
  double absolute, relative, strict_absolute, strict_relative;
  int only_written;
};

struct ComparePartial {
  double max_abs, error_squares, truth_squares, worst_tolerance_ratio, worst_strict_ratio;
  unsigned long long failing, unwritten, first_failing;
};

// A NaN counts as infinitely far away, so that no maximum can drop it.
__device__ double nan_to_infinity(double value) {
  return value == value ? value : __longlong_as_double(0x7ff0000000000000ll);
}

__device__ void merge(ComparePartial& into, const ComparePartial& other) {
  into.max_abs = fmax(into.max_abs, other.max_abs);
  into.error_squares += other.error_squares;
  into.truth_squares += other.truth_squares;
  into.worst_tolerance_ratio = fmax(into.worst_tolerance_ratio, other.worst_tolerance_ratio);
  into.worst_strict_ratio = fmax(into.worst_strict_ratio, other.worst_strict_ratio);
  into.failing += other.failing;
  into.unwritten += other.unwritten;
  into.first_failing = min(into.first_failing, other.first_failing);
}

// Error over bound, where 0 ÷ 0 (an exact result under a zero bound) is 0.
__device__ double error_ratio(double error, double bound) {
  return error == 0.0 ? 0.0 : nan_to_infinity(error / bound);
}

// Whether an element may be one that nobody wrote: it holds one of the two bytes that memory was filled with.
__device__ bool is_poison(const exact::Encoding& encoding, unsigned long long bits) {
  if (encoding.kind == exact::Encoding::condition) return bits > 1;
  const unsigned long long unused = encoding.bytes == 8 ? 0 : ~0ull << 8 * encoding.bytes;
  return (bits | 0x8080808080808080ull | unused) == ~0ull;
}

__device__ ComparePartial compared(const exact::Encoding& encoding, unsigned long long bits,
                                   double expected, const CompareBounds& bounds) {
  ComparePartial one{0, 0, 0, 0, 0, 0, 0, ~0ull};
  const bool poison = is_poison(encoding, bits);
  if (bounds.only_written) {
    one.failing = one.unwritten = poison ? 1 : 0;
    return one;
  }
  const double value = exact::value_of(encoding, bits);
  const double magnitude = fabs(expected);
  const bool infinite = magnitude == __longlong_as_double(0x7ff0000000000000ll);
  const double error = value == expected ? 0.0 : nan_to_infinity(fabs(value - expected));
  const double bound = infinite ? 0.0 : bounds.absolute + bounds.relative * magnitude;
  const double strict_bound =
      infinite ? 0.0 : bounds.strict_absolute + bounds.strict_relative * magnitude;
  one.max_abs = error;
  one.error_squares = error * error;
  one.truth_squares = infinite ? 0.0 : expected * expected;
  one.worst_tolerance_ratio = error_ratio(error, bound);
  one.worst_strict_ratio = error_ratio(error, strict_bound);
  one.failing = error <= bound ? 0 : 1;
  one.unwritten = one.failing && poison ? 1 : 0;
  return one;
}

template <class Word>
__device__ void compare(const Word* output, const double* truth, unsigned long long count,
                        const exact::Encoding& encoding, const CompareBounds& bounds,
                        ComparePartial* partials) {
  ComparePartial mine{0, 0, 0, 0, 0, 0, 0, ~0ull};
  const unsigned long long step = 1ull * gridDim.x * blockDim.x;
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    ComparePartial one = compared(encoding, output[i], truth[i], bounds);
    if (one.failing) one.first_failing = i;
    merge(mine, one);
  }
  __shared__ ComparePartial shared[256];
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) merge(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) partials[blockIdx.x] = shared[0];
}

// For elements of so many bytes.
#define REKERNEL_COMPARE(bytes, Word)                                                               \
  extern "C" __global__ void compare_##bytes(                                                       \
      const Word* output, const double* truth, unsigned long long count,                            \
      const __grid_constant__ exact::Encoding encoding, const __grid_constant__ CompareBounds bounds, \
      ComparePartial* partials) {                                                                   \
    compare(output, truth, count, encoding, bounds, partials);                                      \
  }
REKERNEL_COMPARE(1, unsigned char)
REKERNEL_COMPARE(2, unsigned short)
REKERNEL_COMPARE(4, unsigned)
REKERNEL_COMPARE(8, unsigned long long)

extern "C" __global__ void sum_squares(const double* values, unsigned long long count,
                                       double* partials) {
  double sum = 0;
  const unsigned long long step = 1ull * gridDim.x * blockDim.x;
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    sum += values[i] * values[i];
  }
  __shared__ double shared[256];
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) partials[blockIdx.x] = shared[0];
}

extern "C" __global__ void count_other_bytes(const unsigned char* bytes, unsigned long long count,
                                             unsigned value, unsigned long long* mismatches) {
  unsigned long long mine = 0;
  const unsigned long long step = 1ull * gridDim.x * blockDim.x;
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    mine += bytes[i] != value ? 1 : 0;
  }
  if (mine) atomicAdd(mismatches, mine);
}

// The finaliser of MurmurHash3 (A. Appleby) mixes position and content, so that a sum over all words,
// whose order does not matter, tells buffers apart.
__device__ unsigned long long mix(unsigned long long x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

extern "C" __global__ void digest(const unsigned short* words, unsigned long long bytes,
                                  unsigned long long salt, unsigned long long* sum) {
  unsigned long long mine = 0;
  const unsigned long long count = bytes / 2, step = 1ull * gridDim.x * blockDim.x;
  const unsigned long long first = 1ull * blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned long long i = first; i < count; i += step) mine += mix(mix(i + salt) + words[i]);
  if (first == 0 && bytes % 2 != 0) {
    mine += mix(mix(count + salt) + reinterpret_cast<const unsigned char*>(words)[bytes - 1]);
  }
  atomicAdd(sum, mine);
}

extern "C" __global__ void overwrite(float4* data, unsigned long long count) {
  const unsigned long long step = 1ull * gridDim.x * blockDim.x;
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    data[i] = make_float4(i, 1.f, 2.f, 3.f);
  }
}

__device__ unsigned long long nanoseconds_now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

extern "C" __global__ void stamp(unsigned long long* slot) { *slot = nanoseconds_now(); }

extern "C" __global__ void longest_pause(unsigned long long duration, unsigned long long* longest) {
  const unsigned long long start = nanoseconds_now();
  unsigned long long last = start;
  unsigned long long worst = 0;
  while (last - start < duration) {
    const unsigned long long now = nanoseconds_now();
    if (now > last + worst) worst = now - last;
    last = now;
  }
  *longest = worst;
}

// One 16-byte access a thread and blocks that come and go: on an H200 this copies 4.26 TB/s, where a
// persistent grid with several accesses in flight per thread stays at 4.0.
extern "C" __global__ void copy(float4* to, const float4* from, unsigned long long bytes) {
  const unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x, whole = bytes / 16;
  if (i < whole) {
    to[i] = from[i];
  } else if (i - whole < bytes % 16) {
    reinterpret_cast<char*>(to + whole)[i - whole] = reinterpret_cast<const char*>(from + whole)[i - whole];
  }
}
)cuda";

template <class... Arguments>
void launch_blocks(CUfunction function, unsigned blocks, unsigned threads, const Stream& stream,
                   Arguments... arguments) {
  void* pointers[] = {&arguments...};
  CUlaunchConfig config{};
  config.gridDimX = blocks;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = threads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream.get();
  REKERNEL_CUDA(cuLaunchKernelEx(&config, function, pointers, nullptr));
}

template <class... Arguments>
void launch(CUfunction function, unsigned blocks, const Stream& stream, Arguments... arguments) {
  launch_blocks(function, blocks, block_size, stream, arguments...);
}

/// The kernel of this name for elements of the type.
std::string kernel_for(const char* name, DType dtype) {
  return std::string(name) + "_" + std::to_string(size_in_bytes(dtype));
}

unsigned long long count_of(const BufferView& buffer, std::int64_t element_bytes) {
  return static_cast<unsigned long long>(buffer.bytes / element_bytes);
}

template <class T>
T read_back(CUdeviceptr address) {
  T value;
  REKERNEL_CUDA(cuMemcpyDtoH(&value, address, sizeof value));
  return value;
}

double element_at(const BufferView& buffer, DType dtype, std::int64_t index) {
  const std::int64_t bytes = size_in_bytes(dtype);
  std::uint64_t bits = 0;  // of a machine with the least byte first, as GPUs are
  REKERNEL_CUDA(cuMemcpyDtoH(&bits, buffer.pointer + static_cast<CUdeviceptr>(index * bytes),
                             static_cast<std::size_t>(bytes)));
  return stored_value(dtype, bits);
}

}  // namespace

Program device_tools_program() {
  Program program;
  program.source = input_device_source() + tools_source;
  return program;
}

DeviceTools::DeviceTools(const CompiledProgram& compiled, const DeviceProperties& device)
    : module_(compiled.cubin),
      blocks_(static_cast<unsigned>(device.multiprocessors) * blocks_per_sm),
      counter_(sizeof(unsigned long long)),
      partials_(static_cast<std::int64_t>(blocks_ * sizeof(ComparePartial))) {}

void DeviceTools::fill(const BufferView& buffer, DType dtype, const Distribution& distribution,
                       std::uint64_t seed, std::uint32_t stream_number,
                       const Stream& stream) const {
  launch(module_.function(kernel_for("fill", dtype)), blocks_, stream, buffer.pointer,
         count_of(buffer, size_in_bytes(dtype)), static_cast<unsigned long long>(seed),
         static_cast<unsigned>(stream_number), input_parameters(distribution, seed, stream_number),
         encoding_of(dtype));
}

std::int64_t DeviceTools::count_input_mismatches(const BufferView& buffer, DType dtype,
                                                 const Distribution& distribution,
                                                 std::uint64_t seed, std::uint32_t stream_number,
                                                 const Stream& stream) const {
  clear_counter(stream);
  launch(module_.function(kernel_for("verify", dtype)), blocks_, stream, buffer.pointer,
         count_of(buffer, size_in_bytes(dtype)), static_cast<unsigned long long>(seed),
         static_cast<unsigned>(stream_number), input_parameters(distribution, seed, stream_number),
         encoding_of(dtype), counter_.get());
  return read_counter(stream);
}

std::int64_t DeviceTools::count_other_bytes(const BufferView& buffer, std::uint8_t value,
                                            const Stream& stream) const {
  clear_counter(stream);
  launch(module_.function("count_other_bytes"), blocks_, stream, buffer.pointer,
         count_of(buffer, 1), static_cast<unsigned>(value), counter_.get());
  return read_counter(stream);
}

double DeviceTools::root_mean_square(const BufferView& truth, const Stream& stream) const {
  const unsigned long long count = count_of(truth, sizeof(double));
  launch(module_.function("sum_squares"), blocks_, stream, truth.pointer, count, partials_.get());
  stream.synchronize();
  std::vector<double> partials(blocks_);
  REKERNEL_CUDA(cuMemcpyDtoH(partials.data(), partials_.get(), partials.size() * sizeof(double)));
  double sum = 0;
  for (double partial : partials) sum += partial;
  return std::sqrt(sum / static_cast<double>(count));
}

ErrorStats DeviceTools::compare(const BufferView& output, const Tensor& tensor,
                                const BufferView& truth, const Tolerance& tolerance,
                                double absolute_scale, const Stream& stream) const {
  constexpr double strict_tolerance = 1e-4;  // what KernelBench asks of FP32
  const unsigned long long count = count_of(truth, sizeof(double));
  CompareBounds bounds{};
  if (tensor.comparison == Comparison::close) {
    bounds.absolute = tolerance.absolute * absolute_scale;
    bounds.relative = tolerance.relative;
    bounds.strict_absolute = strict_tolerance * absolute_scale;
    bounds.strict_relative = strict_tolerance;
  }
  bounds.only_written = tensor.comparison == Comparison::extreme ? 1 : 0;
  launch(module_.function(kernel_for("compare", tensor.dtype)), blocks_, stream, output.pointer,
         truth.pointer, count, encoding_of(tensor.dtype), bounds, partials_.get());
  stream.synchronize();
  std::vector<ComparePartial> partials(blocks_);
  REKERNEL_CUDA(
      cuMemcpyDtoH(partials.data(), partials_.get(), partials.size() * sizeof(ComparePartial)));

  ErrorStats stats;
  double error_squares = 0;
  double truth_squares = 0;
  unsigned long long first_failing = ~0ull;
  for (const ComparePartial& partial : partials) {
    stats.max_abs = std::max(stats.max_abs, partial.max_abs);
    stats.worst_tolerance_ratio =
        std::max(stats.worst_tolerance_ratio, partial.worst_tolerance_ratio);
    stats.worst_strict_ratio = std::max(stats.worst_strict_ratio, partial.worst_strict_ratio);
    stats.failing += static_cast<std::int64_t>(partial.failing);
    stats.unwritten += static_cast<std::int64_t>(partial.unwritten);
    error_squares += partial.error_squares;
    truth_squares += partial.truth_squares;
    first_failing = std::min(first_failing, partial.first_failing);
  }
  stats.rms = std::sqrt(error_squares / static_cast<double>(count));
  stats.truth_rms = std::sqrt(truth_squares / static_cast<double>(count));
  if (first_failing != ~0ull) {
    stats.first_failing = static_cast<std::int64_t>(first_failing);
    stats.first_value = element_at(output, tensor.dtype, stats.first_failing);
    stats.first_truth = element_at(truth, DType::f64, stats.first_failing);
  }
  return stats;
}

std::uint64_t DeviceTools::digest(const BufferView& buffer, std::uint64_t salt,
                                  const Stream& stream) const {
  digest_to({counter_.get(), counter_.bytes()}, buffer, salt, stream);
  return static_cast<std::uint64_t>(read_counter(stream));
}

void DeviceTools::digest_to(const BufferView& slot, const BufferView& buffer, std::uint64_t salt,
                            const Stream& stream) const {
  REKERNEL_CUDA(cuMemsetD8Async(slot.pointer, 0, sizeof(unsigned long long), stream.get()));
  launch(module_.function("digest"), blocks_, stream, buffer.pointer, count_of(buffer, 1),
         static_cast<unsigned long long>(salt), slot.pointer);
}

void DeviceTools::overwrite(const BufferView& buffer, const Stream& stream) const {
  launch(module_.function("overwrite"), blocks_, stream, buffer.pointer, count_of(buffer, 16));
}

void DeviceTools::stamp(const BufferView& slot, const Stream& stream) const {
  launch_blocks(module_.function("stamp"), 1, 1, stream, slot.pointer);
}

std::int64_t DeviceTools::longest_pause_ns(std::chrono::nanoseconds duration,
                                           const Stream& stream) const {
  launch_blocks(module_.function("longest_pause"), 1, 1, stream,
                static_cast<unsigned long long>(duration.count()), counter_.get());
  return read_counter(stream);
}

void DeviceTools::copy(const BufferView& to, const BufferView& from, const Stream& stream) const {
  constexpr unsigned threads = 512;
  const unsigned long long bytes = count_of(to, 1);
  const unsigned long long accesses = bytes / 16 + bytes % 16;
  launch_blocks(module_.function("copy"), static_cast<unsigned>((accesses + threads - 1) / threads),
                threads, stream, to.pointer, from.pointer, bytes);
}

void DeviceTools::clear_counter(const Stream& stream) const {
  REKERNEL_CUDA(cuMemsetD8Async(counter_.get(), 0, sizeof(unsigned long long), stream.get()));
}

std::int64_t DeviceTools::read_counter(const Stream& stream) const {
  stream.synchronize();
  return read_back<std::int64_t>(counter_.get());
}

}  // namespace rekernel

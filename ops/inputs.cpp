#include "ops/inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "ops/random.h"

namespace rekernel {

namespace {

constexpr const char* random_source =
#include "random_source.inc"
    ;

constexpr const char* kernels_source = R"cuda(
namespace rekernel::inputs {

using Index = unsigned long long;

struct Quad {
  float value[4];
};

__device__ __forceinline__ Quad draw_quad(Index seed, unsigned stream, int kind, float a, float b,
                                          Index quad) {
  const random::Words words = random::words_of_quad(seed, stream, quad);
  Quad drawn;
#pragma unroll
  for (int i = 0; i < 4; ++i) drawn.value[i] = random::draw(kind, a, b, words.word[i]);
  return drawn;
}

__device__ __forceinline__ unsigned bits_as(float value, const float*) {
  return __float_as_uint(value);
}

__device__ __forceinline__ unsigned bits_as(float value, const unsigned short*) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ __forceinline__ unsigned bits_of(float stored) { return __float_as_uint(stored); }
__device__ __forceinline__ unsigned bits_of(unsigned short stored) { return stored; }

__device__ __forceinline__ void store_bits(float* at, unsigned bits) { *at = __uint_as_float(bits); }
__device__ __forceinline__ void store_bits(unsigned short* at, unsigned bits) {
  *at = static_cast<unsigned short>(bits);
}

// Four elements in one store; `at` is aligned to four elements.
__device__ __forceinline__ void store_quad(float* at, const unsigned (&bits)[4]) {
  *reinterpret_cast<uint4*>(at) = make_uint4(bits[0], bits[1], bits[2], bits[3]);
}
__device__ __forceinline__ void store_quad(unsigned short* at, const unsigned (&bits)[4]) {
  *reinterpret_cast<uint2*>(at) = make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
}

template <class T>
__device__ __forceinline__ void fill(T* data, Index count, Index seed, unsigned stream, int kind,
                                     double a, double b) {
  const Index step = Index{1} * gridDim.x * blockDim.x;
  const float a_float = random::to_float(a), b_float = random::to_float(b);
  for (Index quad = Index{1} * blockIdx.x * blockDim.x + threadIdx.x; 4 * quad < count; quad += step) {
    const Quad drawn = draw_quad(seed, stream, kind, a_float, b_float, quad);
    unsigned bits[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) bits[i] = bits_as(drawn.value[i], data);
    if (4 * quad + 4 <= count) {
      store_quad(data + 4 * quad, bits);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (4 * quad + i < count) store_bits(data + 4 * quad + i, bits[i]);
      }
    }
  }
}

template <class T>
__device__ __forceinline__ void verify(const T* data, Index count, Index seed, unsigned stream,
                                       int kind, double a, double b, Index* mismatches) {
  const Index step = Index{1} * gridDim.x * blockDim.x;
  const float a_float = random::to_float(a), b_float = random::to_float(b);
  Index different = 0;
  for (Index quad = Index{1} * blockIdx.x * blockDim.x + threadIdx.x; 4 * quad < count; quad += step) {
    const Quad drawn = draw_quad(seed, stream, kind, a_float, b_float, quad);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Index index = 4 * quad + i;
      if (index < count && bits_of(data[index]) != bits_as(drawn.value[i], data)) ++different;
    }
  }
  if (different != 0) atomicAdd(mismatches, different);
}

}  // namespace rekernel::inputs

// 1024 threads twice a multiprocessor: full occupancy at any block size.
#define REKERNEL_INPUT_KERNELS(dtype, T)                                                          \
  extern "C" __global__ void __launch_bounds__(1024, 2)                                           \
      fill_##dtype(T* data, unsigned long long count, unsigned long long seed, unsigned stream,   \
                   int kind, double a, double b) {                                                \
    rekernel::inputs::fill(data, count, seed, stream, kind, a, b);                                \
  }                                                                                               \
  extern "C" __global__ void __launch_bounds__(1024, 2)                                           \
      verify_##dtype(const T* data, unsigned long long count, unsigned long long seed,            \
                     unsigned stream, int kind, double a, double b,                               \
                     unsigned long long* mismatches) {                                            \
    rekernel::inputs::verify(data, count, seed, stream, kind, a, b, mismatches);                  \
  }
REKERNEL_INPUT_KERNELS(f16, unsigned short)
REKERNEL_INPUT_KERNELS(f32, float)
)cuda";

double rounded_to(DType dtype, float value) {
  switch (dtype) {
    case DType::f16:
      return from_half_bits(to_half_bits(value));
    case DType::f32:
      return value;
    default:
      throw std::logic_error("input_value: inputs are f16 or f32");
  }
}

}  // namespace

std::uint32_t tensor_stream(const std::string& tensor_name) {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : tensor_name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

double input_value(const Distribution& distribution, DType dtype, std::uint64_t seed,
                   std::uint32_t stream, std::uint64_t index) {
  const random::Words words = random::words_of_quad(seed, stream, index / 4);
  return rounded_to(
      dtype, random::draw(static_cast<int>(distribution.kind), random::to_float(distribution.a),
                          random::to_float(distribution.b), words.word[index % 4]));
}

HostInputs host_inputs(const Problem& problem, std::uint64_t seed) {
  HostInputs inputs;
  for (const Tensor& tensor : problem.tensors) {
    if (tensor.role != Role::input) continue;
    const std::uint32_t stream = tensor_stream(tensor.name);
    std::vector<double>& values = inputs[tensor.name];
    values.resize(static_cast<std::size_t>(tensor.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = input_value(tensor.distribution, tensor.dtype, seed, stream, i);
    }
  }
  return inputs;
}

std::string input_device_source() { return std::string(random_source) + kernels_source; }

std::uint16_t to_half_bits(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (!(magnitude < 65536.0)) return sign | 0x7c00;
  if (magnitude == 0.0) return sign;
  // In units of the last place there; subnormals share the exponent of the smallest normal number.
  // A round-up past the last significand carries into the exponent, up to infinity.
  const int exponent = std::max(std::ilogb(magnitude), -14);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + steps));
}

double from_half_bits(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double magnitude;
  if (exponent == 31) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return std::copysign(magnitude, bits & 0x8000 ? -1.0 : 1.0);
}

}  // namespace rekernel

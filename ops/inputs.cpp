#include "ops/inputs.h"

#include <algorithm>
#include <bit>
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

__device__ __forceinline__ Quad draw_quad(Index seed, unsigned stream,
                                          const random::Parameters& parameters, Index quad) {
  const random::Words words = random::words_of_quad(seed, stream, quad);
  const unsigned place = random::outlier_place(parameters, quad);
  Quad drawn;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    drawn.value[i] = random::draw(parameters, words.word[i], 4 * quad + i, place);
  }
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
__device__ __forceinline__ void fill(T* data, Index count, Index seed, unsigned stream,
                                     const random::Parameters& parameters) {
  const Index step = Index{1} * gridDim.x * blockDim.x;
  for (Index quad = Index{1} * blockIdx.x * blockDim.x + threadIdx.x; 4 * quad < count; quad += step) {
    const Quad drawn = draw_quad(seed, stream, parameters, quad);
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
                                       const random::Parameters& parameters, Index* mismatches) {
  const Index step = Index{1} * gridDim.x * blockDim.x;
  Index different = 0;
  for (Index quad = Index{1} * blockIdx.x * blockDim.x + threadIdx.x; 4 * quad < count; quad += step) {
    const Quad drawn = draw_quad(seed, stream, parameters, quad);
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
#define REKERNEL_PARAMETERS                                                                       \
  int kind, float a, float b, float row_a, float row_b, unsigned long long row_begin,             \
      unsigned long long row_end, unsigned stretch_bits, unsigned has_outliers, float outlier,    \
      unsigned key
#define REKERNEL_INPUT_KERNELS(dtype, T)                                                          \
  extern "C" __global__ void __launch_bounds__(1024, 2)                                           \
      fill_##dtype(T* data, unsigned long long count, unsigned long long seed, unsigned stream,   \
                   REKERNEL_PARAMETERS) {                                                         \
    rekernel::inputs::fill(data, count, seed, stream,                                             \
                           {kind, a, b, row_a, row_b, row_begin, row_end, stretch_bits,           \
                            has_outliers, outlier, key});                                         \
  }                                                                                               \
  extern "C" __global__ void __launch_bounds__(1024, 2)                                           \
      verify_##dtype(const T* data, unsigned long long count, unsigned long long seed,            \
                     unsigned stream, REKERNEL_PARAMETERS, unsigned long long* mismatches) {      \
    rekernel::inputs::verify(data, count, seed, stream,                                           \
                             {kind, a, b, row_a, row_b, row_begin, row_end, stretch_bits,         \
                              has_outliers, outlier, key},                                        \
                             mismatches);                                                         \
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

random::Parameters input_parameters(const Distribution& distribution, std::uint64_t seed,
                                    std::uint32_t stream) {
  // Words of a counter that no element has.
  const random::Words places = random::words_of_quad(seed, stream, ~0ull);
  random::Parameters parameters{};
  parameters.kind = static_cast<int>(distribution.kind);
  parameters.a = random::to_float(distribution.a);
  parameters.b = random::to_float(distribution.b);
  parameters.stretch_bits = 2;
  parameters.key = places.word[0];
  if (const auto& odd = distribution.odd_row) {
    if (odd->rows < 1 || odd->elements < 1) throw std::logic_error("input_parameters: no row");
    const std::uint64_t row = places.word[1] % static_cast<std::uint64_t>(odd->rows);
    parameters.row_begin = row * static_cast<std::uint64_t>(odd->elements);
    parameters.row_end = parameters.row_begin + static_cast<std::uint64_t>(odd->elements);
    parameters.row_a = random::to_float(odd->mean);
    parameters.row_b = random::to_float(odd->deviation);
  }
  if (const auto& outliers = distribution.outliers) {
    const auto stretch = static_cast<std::uint64_t>(outliers->stretch);
    if (stretch < 4 || !std::has_single_bit(stretch) || stretch > 1u << 31) {
      throw std::logic_error("input_parameters: a stretch is a power of two from 4 up");
    }
    parameters.stretch_bits = static_cast<unsigned>(std::countr_zero(stretch));
    parameters.has_outliers = 1;
    parameters.outlier = random::to_float(outliers->value);
  }
  return parameters;
}

double input_value(const Distribution& distribution, DType dtype, std::uint64_t seed,
                   std::uint32_t stream, std::uint64_t index) {
  const random::Parameters parameters = input_parameters(distribution, seed, stream);
  const random::Words words = random::words_of_quad(seed, stream, index / 4);
  return rounded_to(dtype, random::draw(parameters, words.word[index % 4], index,
                                        random::outlier_place(parameters, index / 4)));
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

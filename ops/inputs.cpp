#include "ops/inputs.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "ops/random.h"

namespace rekernel {

namespace {

constexpr const char* exact_source =
#include "exact_source.inc"
    ;
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

// Four elements, so aligned that few instructions store them.
template <class Word>
struct alignas(sizeof(Word) < 4 ? 4 * sizeof(Word) : 16) Four {
  Word element[4];
};

template <class Word>
__device__ __forceinline__ void fill(Word* data, Index count, Index seed, unsigned stream,
                                     const random::Parameters& parameters,
                                     const exact::Encoding& encoding) {
  const Index step = Index{1} * gridDim.x * blockDim.x;
  for (Index quad = Index{1} * blockIdx.x * blockDim.x + threadIdx.x; 4 * quad < count; quad += step) {
    const Quad drawn = draw_quad(seed, stream, parameters, quad);
    Four<Word> four;
#pragma unroll
    for (int i = 0; i < 4; ++i) four.element[i] = exact::stored<Word>(encoding, drawn.value[i]);
    if (4 * quad + 4 <= count) {
      reinterpret_cast<Four<Word>*>(data)[quad] = four;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (4 * quad + i < count) data[4 * quad + i] = four.element[i];
      }
    }
  }
}

template <class Word>
__device__ __forceinline__ void verify(const Word* data, Index count, Index seed, unsigned stream,
                                       const random::Parameters& parameters,
                                       const exact::Encoding& encoding, Index* mismatches) {
  const Index step = Index{1} * gridDim.x * blockDim.x;
  Index different = 0;
  for (Index quad = Index{1} * blockIdx.x * blockDim.x + threadIdx.x; 4 * quad < count; quad += step) {
    const Quad drawn = draw_quad(seed, stream, parameters, quad);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Index index = 4 * quad + i;
      if (index < count && data[index] != exact::stored<Word>(encoding, drawn.value[i])) ++different;
    }
  }
  if (different != 0) atomicAdd(mismatches, different);
}

}  // namespace rekernel::inputs

// 1024 threads twice a multiprocessor: full occupancy at any block size.
#define REKERNEL_INPUT_KERNELS(bytes, Word)                                                        \
  extern "C" __global__ void __launch_bounds__(1024, 2)                                            \
      fill_##bytes(Word* data, unsigned long long count, unsigned long long seed, unsigned stream, \
                   const __grid_constant__ rekernel::random::Parameters parameters,                \
                   const __grid_constant__ rekernel::exact::Encoding encoding) {                   \
    rekernel::inputs::fill(data, count, seed, stream, parameters, encoding);                       \
  }                                                                                                \
  extern "C" __global__ void __launch_bounds__(1024, 2)                                            \
      verify_##bytes(const Word* data, unsigned long long count, unsigned long long seed,          \
                     unsigned stream, const __grid_constant__ rekernel::random::Parameters parameters, \
                     const __grid_constant__ rekernel::exact::Encoding encoding,                   \
                     unsigned long long* mismatches) {                                             \
    rekernel::inputs::verify(data, count, seed, stream, parameters, encoding, mismatches);         \
  }
REKERNEL_INPUT_KERNELS(1, unsigned char)
REKERNEL_INPUT_KERNELS(2, unsigned short)
REKERNEL_INPUT_KERNELS(4, unsigned)
REKERNEL_INPUT_KERNELS(8, unsigned long long)
)cuda";

/// Element `index` of a tensor whose elements have this in common.
double drawn(const random::Parameters& parameters, const exact::Encoding& encoding,
             std::uint64_t seed, std::uint32_t stream, std::uint64_t index) {
  const random::Words words = random::words_of_quad(seed, stream, index / 4);
  const float value = random::draw(parameters, words.word[index % 4], index,
                                   random::outlier_place(parameters, index / 4));
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * encoding.bytes);
  return exact::value_of(encoding, exact::stored<std::uint64_t>(encoding, value) & all);
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
  if (distribution.kind == Distribution::Kind::integers) {
    if (!(distribution.a < distribution.b)) throw std::logic_error("input_parameters: no integers");
    parameters.first = static_cast<int>(distribution.a);
    parameters.span = static_cast<unsigned>(distribution.b - distribution.a);
  }
  if (distribution.kind == Distribution::Kind::choice) {
    const std::vector<double>& choices = distribution.choices;
    if (choices.empty() || choices.size() > Distribution::max_choices) {
      throw std::logic_error("input_parameters: from 1 to 16 choices");
    }
    parameters.span = static_cast<unsigned>(choices.size());
    std::transform(choices.begin(), choices.end(), parameters.choices,
                   [](double choice) { return random::to_float(choice); });
  }
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
  if (const auto& ends = distribution.ends) {
    if (ends->row < 2) throw std::logic_error("input_parameters: rows have at least 2 elements");
    parameters.end_row = static_cast<std::uint64_t>(ends->row);
    parameters.end_share = ~0ull / parameters.end_row;
    parameters.end_value = random::to_float(ends->value);
  }
  return parameters;
}

double input_value(const Distribution& distribution, DType dtype, std::uint64_t seed,
                   std::uint32_t stream, std::uint64_t index) {
  return drawn(input_parameters(distribution, seed, stream), encoding_of(dtype), seed, stream,
               index);
}

HostInputs host_inputs(const Problem& problem, std::uint64_t seed) {
  HostInputs inputs;
  for (const Tensor* tensor : problem.inputs()) {
    const std::uint32_t stream = tensor_stream(tensor->name);
    const random::Parameters parameters = input_parameters(tensor->distribution, seed, stream);
    const exact::Encoding encoding = encoding_of(tensor->dtype);
    std::vector<double>& values = inputs[tensor->name];
    values.resize(static_cast<std::size_t>(tensor->elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = drawn(parameters, encoding, seed, stream, i);
    }
  }
  return problem.made ? problem.made(inputs) : inputs;
}

std::string input_device_source() {
  return std::string(exact_source) + random_source + kernels_source;
}

}  // namespace rekernel

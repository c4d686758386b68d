#include "harness/audit/constants.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "harness/gpu/cuda.h"

namespace rekernel {

namespace {

/// Finite values of parts that are spread over a tensor.
std::vector<double> some_values(const BufferView& view, DType dtype) {
  constexpr std::int64_t parts = 64;
  constexpr std::int64_t part_elements = 1 << 14;
  const std::int64_t size = size_in_bytes(dtype);
  const std::int64_t elements = view.bytes / size;
  const std::int64_t step = std::max<std::int64_t>(elements / parts, 1);
  std::vector<double> values;
  std::vector<unsigned char> bytes;
  for (std::int64_t first = 0; first < elements; first += step) {
    const std::int64_t count = std::min({part_elements, step, elements - first});
    bytes.resize(static_cast<std::size_t>(count * size));
    REKERNEL_CUDA(cuMemcpyDtoH(bytes.data(), view.pointer + static_cast<CUdeviceptr>(first * size),
                               bytes.size()));
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * size, static_cast<std::size_t>(size));
      const double value = stored_value(dtype, bits);
      if (std::isfinite(value)) values.push_back(value);
    }
  }
  return values;
}

}  // namespace

std::string to_text(const Constant& constant) {
  return constant.output + " = " + std::to_string(stored_value(constant.dtype, constant.bits)) +
         " everywhere";
}

std::vector<Constant> best_constants(const Problem& problem, const Bindings& outputs) {
  std::vector<Constant> constants;
  for (const Tensor& tensor : problem.tensors) {
    if (tensor.role != Role::output || !float_format(tensor.dtype)) continue;
    const std::vector<double> values = some_values(outputs.at(tensor.name), tensor.dtype);
    if (values.empty()) continue;
    const double mean =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    std::set<std::uint64_t> seen;
    for (const double value : {mean, (*low + *high) / 2}) {
      const std::uint64_t bits = stored_bits(tensor.dtype, value);
      if (seen.insert(bits).second) constants.push_back({tensor.name, tensor.dtype, bits});
    }
  }
  return constants;
}

void fill(const BufferView& view, const Constant& constant) {
  constexpr std::int64_t pattern_elements = 1 << 20;
  const std::int64_t size = size_in_bytes(constant.dtype);
  const std::int64_t count = std::min(pattern_elements, view.bytes / size);
  std::vector<unsigned char> pattern(static_cast<std::size_t>(count * size));
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(pattern.data() + i * size, &constant.bits, static_cast<std::size_t>(size));
  }
  for (std::int64_t at = 0; at < view.bytes;) {
    const std::size_t bytes = std::min(pattern.size(), static_cast<std::size_t>(view.bytes - at));
    REKERNEL_CUDA(cuMemcpyHtoD(view.pointer + static_cast<CUdeviceptr>(at), pattern.data(), bytes));
    at += static_cast<std::int64_t>(bytes);
  }
}

}  // namespace rekernel

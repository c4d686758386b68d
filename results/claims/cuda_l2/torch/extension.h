// Stands in for PyTorch's header where a program of CUDA-L2 is compiled without PyTorch: a tensor is an address in
// device memory with sizes. It has what those kernels' host code asks of a tensor, and no more.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace at {
using Half = __half;
enum class ScalarType { Half, Float };
inline std::ostream& operator<<(std::ostream& out, ScalarType type) {
  return out << (type == ScalarType::Half ? "half" : "float");
}
}  // namespace at

namespace c10 {
using Half = at::Half;
using ScalarType = at::ScalarType;
}  // namespace c10

namespace torch {

using Half = at::Half;
inline constexpr at::ScalarType kHalf = at::ScalarType::Half;
inline constexpr at::ScalarType kFloat16 = at::ScalarType::Half;
inline constexpr at::ScalarType kFloat = at::ScalarType::Float;
inline constexpr at::ScalarType kFloat32 = at::ScalarType::Float;

struct TensorOptions {
  at::ScalarType type = kHalf;
  at::ScalarType dtype() const { return type; }
};
inline std::ostream& operator<<(std::ostream& out, const TensorOptions& options) {
  return out << options.type;
}

// A row-major matrix of FP16.
class Tensor {
 public:
  Tensor(void* address, std::int64_t rows, std::int64_t columns)
      : address_(address), sizes_{rows, columns} {}
  void* data_ptr() const { return address_; }
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(address_);
  }
  std::int64_t size(std::int64_t i) const { return sizes_.at(static_cast<std::size_t>(i < 0 ? i + 2 : i)); }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  std::int64_t dim() const { return 2; }
  std::int64_t numel() const { return sizes_[0] * sizes_[1]; }
  std::int64_t stride(std::int64_t i) const { return i == 0 || i == -2 ? sizes_[1] : 1; }
  at::ScalarType dtype() const { return kHalf; }
  at::ScalarType scalar_type() const { return kHalf; }
  TensorOptions options() const { return {}; }
  bool is_cuda() const { return true; }
  bool is_contiguous() const { return true; }

 private:
  void* address_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace torch

#define TORCH_CHECK(condition, ...) \
  if (!(condition)) throw std::runtime_error("check failed: " #condition)

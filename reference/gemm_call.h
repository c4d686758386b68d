#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reference/shapes.h"

namespace rekernel {

/// A matrix product as BLAS takes it: matrices column by column, `leading` elements apart, of which
/// the factors may be transposed. result (m × n) = scale · op(first) (m × k) · op(second) (k × n).
struct GemmCall {
  struct Matrix {
    std::string tensor;
    bool transposed = false;
    std::int64_t leading = 1;
    std::int64_t batch_stride = 0;  ///< 0: all products share it
  };
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
  Matrix first, second, result;
  double scale = 1;
  /// Vectors for the rows of `first` and the columns of `second`; empty: none.
  std::string first_scale, second_scale;
};

/// One vector times one matrix, as BLAS takes it: result = scale · op(matrix) · vector, the matrix
/// being rows × columns before `op`.
struct GemvCall {
  std::string matrix, vector, result;
  bool transposed = false;
  std::int64_t rows = 1, columns = 1, leading = 1;
  std::int64_t vector_step = 1, result_step = 1;  ///< between elements
  double scale = 1;
};

/// The same product where its result is a single row or column; none of others.
std::optional<GemvCall> gemv_call(const GemmCall& call);

/// A row-major result is a column-major one transposed: Cᵀ = Bᵀ · Aᵀ has the same bytes.
GemmCall gemm_call(const MatrixProduct& product);

}  // namespace rekernel

#include "reference/gemm_call.h"

#include <algorithm>
#include <utility>

namespace rekernel {

namespace {

MatrixProduct::Matrix transposed(MatrixProduct::Matrix matrix) {
  std::swap(matrix.row_stride, matrix.column_stride);
  return matrix;
}

/// Strides of extents of 1 are 0, and mean nothing.
GemmCall::Matrix column_major(const MatrixProduct::Matrix& matrix, std::int64_t rows,
                              std::int64_t columns) {
  const bool is_transposed = matrix.row_stride > 1;
  const std::int64_t leading =
      is_transposed ? std::max(matrix.row_stride, columns) : std::max(matrix.column_stride, rows);
  return {matrix.tensor, is_transposed, leading, matrix.batch_stride};
}

}  // namespace

GemmCall gemm_call(const MatrixProduct& product) {
  MatrixProduct turned = product;
  if (product.c.row_stride > 1) {
    turned.a = transposed(product.b);
    turned.b = transposed(product.a);
    turned.c = transposed(product.c);
    std::swap(turned.m, turned.n);
    std::swap(turned.row_scale, turned.column_scale);
  }
  return {.m = turned.m,
          .n = turned.n,
          .k = turned.k,
          .batch = turned.batch,
          .first = column_major(turned.a, turned.m, turned.k),
          .second = column_major(turned.b, turned.k, turned.n),
          .result = column_major(turned.c, turned.m, turned.n),
          .scale = turned.scale,
          .first_scale = turned.row_scale,
          .second_scale = turned.column_scale};
}

std::optional<GemvCall> gemv_call(const GemmCall& call) {
  const bool column = call.n == 1;
  if (call.batch != 1 || (!column && call.m != 1) || !call.first_scale.empty()) {
    return std::nullopt;
  }
  // A single row is the transpose of a column: the factors change places.
  const GemmCall::Matrix& matrix = column ? call.first : call.second;
  const GemmCall::Matrix& vector = column ? call.second : call.first;
  const std::int64_t outputs = column ? call.m : call.n;
  const bool transposed = matrix.transposed == column;
  // A row lies with its elements a leading extent apart.
  const bool is_row = vector.transposed == column;
  return GemvCall{.matrix = matrix.tensor,
                  .vector = vector.tensor,
                  .result = call.result.tensor,
                  .transposed = transposed,
                  .rows = transposed ? call.k : outputs,
                  .columns = transposed ? outputs : call.k,
                  .leading = matrix.leading,
                  .vector_step = is_row ? vector.leading : 1,
                  .result_step = column ? 1 : call.result.leading,
                  .scale = call.scale};
}

}  // namespace rekernel

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ops/problem.h"

namespace rekernel {

// What libraries compute, with the names of a problem's tensors and all that a call needs to know.
// Tensors are packed and row-major; extents run from the outermost inwards.

using Extents = std::vector<std::int64_t>;

/// C = scale · A · B for each of `batch` matrices, m × k times k × n.
struct MatrixProduct {
  /// A tensor seen as matrices; strides in elements.
  struct Matrix {
    std::string tensor;
    std::int64_t row_stride = 0, column_stride = 0, batch_stride = 0;
  };
  DType type = DType::f32, result_type = DType::f32;
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
  Matrix a, b, c;
  double scale = 1;
  /// Vectors that each row of A and each column of B is multiplied by; empty: none.
  std::string row_scale, column_scale;
};

/// Windows over images.
struct Windows {
  Extents window, stride, padding;
};

/// Pooling of batch × channels images; an average counts padding as zeros.
struct Pooling {
  DType type = DType::f32;
  std::string x, y;
  bool average = false;
  std::int64_t batch = 1, channels = 1;
  Extents in, out;
  Windows windows;

  /// The same with at least two dimensions: cuDNN takes a line as an image of one row.
  Pooling as_images() const;
};

/// Cross-correlation of images of one to three dimensions, or its transpose.
struct Convolution {
  DType type = DType::f32;
  std::string x, weight, bias, y;  ///< `bias`, one value a filter: empty if there is none
  bool transposed = false;
  std::int64_t batch = 1, channels = 1, filters = 1, groups = 1;
  /// `out`: of the convolution, before any pooling.
  Extents in, out;
  Windows windows;
  Extents dilation;
  bool relu = false;
  std::optional<Pooling> pooling;  ///< by the maximum, after all else

  /// The same with at least two dimensions, as of Pooling.
  Convolution as_images() const;
  Extents x_extents() const;
  /// (filters, channels / groups, …), transposed (channels, filters / groups, …).
  Extents weight_extents() const;
  Extents convolved_extents() const;
};

/// Of rows, each of which is packed. Backward: dx = y · (dy - Σ y · dy).
struct Softmax {
  DType type = DType::f32;
  enum class Kind { plain, logarithm, backward } kind = Kind::plain;
  std::string x;  ///< backward: dy
  std::string y;
  std::string dx;  ///< of backward alone
  std::int64_t rows = 1, columns = 1;
};

/// Layer norm of rows, with a weight and a bias for each column.
struct LayerNorm {
  std::string x, weight, bias, y;
  std::int64_t rows = 1, columns = 1;
  double eps = 0;
};

/// Normalises each channel over the batch and all that is inside of it. Instance norm is the same
/// of one image with batch × channels of them, without weights.
struct BatchNorm {
  std::string x, weight, bias, y;  ///< `weight` and `bias` both or neither
  std::int64_t batch = 1, channels = 1, inner = 1;
  double eps = 0;
  bool of_instances = false;
};

/// Of the middle of three extents; `scale` is what a sum is multiplied by.
struct Reduction {
  enum class Kind { sum, max, min } kind = Kind::sum;
  std::string x, y;
  std::int64_t outer = 1, length = 1, inner = 1;
  double scale = 1;
};

/// A function of single elements.
struct Activation {
  enum class Kind { relu, sigmoid, tanh, elu, swish } kind = Kind::relu;
  std::string x, y;
  std::int64_t elements = 1;
  double alpha = 0;  ///< of elu
};

/// softmax(scale · Q Kᵀ) V, heads apart. A key's head serves heads / key_heads queries' heads.
/// Tensors of queries may lack the axis of queries where there is one query.
struct Attention {
  DType type = DType::f16;
  std::string q, k, v, o;
  std::int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, head_dim = 1;
  double scale = 1;
  bool causal = false;      ///< query i sees the keys up to i
  std::int64_t window = 0;  ///< of causal: and the last `window` of them alone; 0: all
  std::string lengths;      ///< i32 (batch): how many keys are seen, at least 1; empty: all
};

using LibraryShape = std::variant<MatrixProduct, Convolution, Pooling, Softmax, LayerNorm,
                                  BatchNorm, Reduction, Activation, Attention>;

/// What a problem's definition is, of all this: nothing, or one or several ways to see it. A shape
/// is named only if the definition that it stands for equals the problem's (normal_form.h).
std::vector<LibraryShape> shapes_of(const Problem& problem);

}  // namespace rekernel

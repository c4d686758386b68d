#pragma once

#include <cstdint>

#include "ops/attention_sizes.h"
#include "ops/convolution_sizes.h"
#include "ops/problem.h"

namespace rekernel {

// The operators of the catalog at any size, so that tests and tools can make small instances of the
// same problem. Every id, tensor name and attribute is the catalog's. Without an argument, an
// operator has the catalog's sizes. Declarations alone: no digest of what judges a row covers this
// header (harness/base/judging_sources.cpp), so that a new problem changes no other's.

/// c (m, n) = a (m, k) · b (k, n). Attributes m, n, k.
Problem make_matmul_fp32();
Problem make_matmul_fp32(std::int64_t m, std::int64_t n, std::int64_t k);
Problem make_matmul_fp16();
Problem make_matmul_fp16(std::int64_t m, std::int64_t n, std::int64_t k);

/// output (batch, filters, out_height, out_width) = the cross-correlation of input (batch,
/// in_channels, height, width), zero-padded, with weight (filters, in_channels, kernel, kernel),
/// plus bias (filters). Attributes: the fields of ConvolutionSizes, out_height, out_width.
Problem make_conv2d();
Problem make_conv2d(const ConvolutionSizes& sizes);

/// The same, then max(·, 0), then the maximum over 3 × 3 windows at stride 2 without padding:
/// output (batch, filters, pooled_height, pooled_width). Further attributes: pool_kernel,
/// pool_stride, pooled_height, pooled_width.
Problem make_conv2d_relu_maxpool();
Problem make_conv2d_relu_maxpool(const ConvolutionSizes& sizes);

/// y = softmax of x (rows, columns) along each row. Attributes rows, columns.
Problem make_softmax();
Problem make_softmax(std::int64_t rows, std::int64_t columns);

/// y = (x − mean) ÷ √(variance + eps) · weight + bias, statistics over the last three dimensions of
/// x (batch, channels, height, width); weight and bias (channels, height, width). Attributes batch,
/// features (channels · height · width) and the real eps.
Problem make_layernorm();
Problem make_layernorm(std::int64_t batch, std::int64_t channels, std::int64_t height,
                       std::int64_t width);

/// o = softmax(scale · q·kᵀ) · v per head; q, k, v, o (batch, heads, length, head_dim). With the
/// causal mask, position i sees positions 0 to i. Attributes: the fields of AttentionSizes, causal
/// (0 or 1), and the real scale, 1 ÷ √head_dim.
Problem make_attention_fp16();
Problem make_attention_fp16(const AttentionSizes& sizes,
                            std::int64_t workspace_bytes = attention_workspace_bytes);
Problem make_attention_fp16_causal();
Problem make_attention_fp16_causal(const AttentionSizes& sizes,
                                   std::int64_t workspace_bytes = attention_workspace_bytes);

}  // namespace rekernel

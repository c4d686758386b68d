#include "ops/catalog.h"

#include <vector>

#include "ops/operators.h"

namespace rekernel {

std::span<const Problem> catalog() {
  static const std::vector<Problem> problems = [] {
    const ConvolutionSizes convolution{.batch = 100,
                                       .in_channels = 3,
                                       .height = 224,
                                       .width = 224,
                                       .filters = 96,
                                       .kernel = 11,
                                       .stride = 4,
                                       .padding = 2};
    const AttentionSizes attention{.batch = 4, .heads = 16, .length = 4096, .head_dim = 128};
    return std::vector<Problem>{
        make_matmul_fp32(4096, 4096, 4096),
        make_conv2d(convolution),
        make_softmax(4096, 65536),
        make_layernorm(16, 64, 256, 256),
        make_conv2d_relu_maxpool(convolution),
        make_matmul_fp16(4096, 4096, 4096),
        make_attention_fp16(attention),
        make_attention_fp16_causal(attention),
    };
  }();
  return problems;
}

const Problem* find_problem(std::string_view id) {
  for (const Problem& problem : catalog()) {
    if (problem.id == id) return &problem;
  }
  return nullptr;
}

}  // namespace rekernel

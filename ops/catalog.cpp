#include "ops/catalog.h"

#include <vector>

#include "ops/operators.h"

namespace rekernel {

std::span<const Problem> catalog() {
  static const std::vector<Problem> problems = {make_matmul_fp32(),
                                                make_conv2d(),
                                                make_softmax(),
                                                make_layernorm(),
                                                make_conv2d_relu_maxpool(),
                                                make_matmul_fp16(),
                                                make_attention_fp16(),
                                                make_attention_fp16_causal()};
  return problems;
}

const Problem* find_problem(std::string_view id) {
  for (const Problem& problem : catalog()) {
    if (problem.id == id) return &problem;
  }
  return nullptr;
}

}  // namespace rekernel

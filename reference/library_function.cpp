#include "reference/library_function.h"

#include <stdexcept>

#include "harness/base/text.h"

namespace rekernel {

LibraryFunction library_function(const Problem& problem) {
  const auto word = [&](const char* name) { return std::to_string(problem.attribute(name)); };
  if (problem.id.starts_with("matmul")) {
    return {.cpp = "libraries/matmul.h.in", .cublas = true, .python = "torch.matmul(a, b)"};
  }
  if (problem.id == "softmax") {
    return {.cpp = "libraries/softmax.h.in", .cudnn = true, .python = "torch.softmax(x, dim=1)"};
  }
  if (problem.id == "layernorm") {
    return {.cpp = "libraries/layernorm.h.in",
            .cudnn = true,
            .python = "F.layer_norm(x, weight.shape, weight, bias, " +
                      printed("%.17g", problem.real_attribute("eps")) + ")"};
  }
  if (problem.id == "conv2d" || problem.id == "conv2d_relu_maxpool") {
    const bool pooled = problem.id != "conv2d";
    const std::string convolution =
        "F.conv2d(input, weight, bias, " + word("stride") + ", " + word("padding") + ")";
    return {.cpp = "libraries/convolution.h.in",
            .cpp_words = {{"window", pooled ? word("pool_kernel") : "0"},
                          {"window_stride", pooled ? word("pool_stride") : "0"}},
            .cudnn = true,
            .python = pooled ? "F.max_pool2d(F.relu(" + convolution + "), " + word("pool_kernel") +
                                   ", " + word("pool_stride") + ")"
                             : convolution};
  }
  if (problem.id.starts_with("attention")) {
    return {.cpp = "libraries/attention.h.in",
            .cublas = true,
            .cudnn = true,
            .python = std::string("F.scaled_dot_product_attention(q, k, v, is_causal=") +
                      (problem.attribute("causal") ? "True" : "False") +
                      ", scale=" + printed("%.17g", problem.real_attribute("scale")) + ")"};
  }
  throw std::logic_error("no library function for problem " + problem.id);
}

}  // namespace rekernel

#include "reference/library_function.h"

namespace rekernel {

LibraryFunction library_function(const Problem& problem) {
  if (problem.group != "published") return {.python = problem.pytorch};
  const auto word = [&](const char* name) { return std::to_string(problem.attribute(name)); };
  LibraryFunction function{.python = problem.pytorch};
  if (problem.id.starts_with("matmul")) {
    function.cpp = "libraries/matmul.h.in";
    function.cublas = true;
  } else if (problem.id == "softmax") {
    function.cpp = "libraries/softmax.h.in";
    function.cudnn = true;
  } else if (problem.id == "layernorm") {
    function.cpp = "libraries/layernorm.h.in";
    function.cudnn = true;
  } else if (problem.id == "conv2d" || problem.id == "conv2d_relu_maxpool") {
    const bool pooled = problem.id != "conv2d";
    function.cpp = "libraries/convolution.h.in";
    function.cpp_words = {{"window", pooled ? word("pool_kernel") : "0"},
                          {"window_stride", pooled ? word("pool_stride") : "0"}};
    function.cudnn = true;
  } else if (problem.id.starts_with("attention")) {
    function.cpp = "libraries/attention.h.in";
    function.cublas = function.cudnn = true;
  }
  return function;
}

}  // namespace rekernel

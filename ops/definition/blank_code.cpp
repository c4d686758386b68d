#include "ops/definition/blank_code.h"

#include <algorithm>
#include <string>

#include "ops/definition/expression_code.h"

namespace rekernel::definition {

namespace {

constexpr std::int64_t block = 256;

std::string includes(const Definition& definition) {
  std::string text = "#include \"problem.h\"\n";
  const auto any = [&](DType one, DType other) {
    const auto& tensors = definition.tensors();
    return std::any_of(tensors.begin(), tensors.end(), [&](const TensorInfo& tensor) {
      return tensor.dtype == one || tensor.dtype == other;
    });
  };
  if (any(DType::f16, DType::f16)) text += "#include <cuda_fp16.h>\n";
  if (any(DType::bf16, DType::bf16)) text += "#include <cuda_bf16.h>\n";
  if (any(DType::f8e4m3, DType::f8e5m2)) text += "#include <cuda_fp8.h>\n";
  return text;
}

}  // namespace

Program blank_program(const Definition& definition) {
  Program program;
  KernelLaunch launch;
  launch.kernel = "compute";
  launch.block = {block, 1, 1};
  std::string parameters;
  std::string first_output;
  for (const TensorInfo& tensor : definition.tensors()) {
    const bool is_input = tensor.role == TensorInfo::Role::input;
    parameters += (parameters.empty() ? "" : ",\n                                   ") +
                  std::string(is_input ? "const " : "") + element_type(*tensor.dtype) +
                  "* __restrict__ " + tensor.name;
    launch.args.push_back(BufferArgument{tensor.name});
    if (is_input || !first_output.empty()) continue;
    first_output = tensor.name;
    launch.grid[0].count = (tensor.elements() + block - 1) / block;
  }
  program.source =
      includes(definition) +
      "\n// What to compute, the problem's own program says (`rekernel show`): a thread for each "
      "element of\n// '" +
      first_output + "' so far, which writes nothing.\nextern \"C\" __global__ void compute(" +
      parameters + ") {\n  const long long i = blockIdx.x * " + std::to_string(block) +
      "ll + threadIdx.x;\n  if (i >= problem::" + first_output + "_elements) return;\n}\n";
  program.steps.push_back(std::move(launch));
  return program;
}

}  // namespace rekernel::definition

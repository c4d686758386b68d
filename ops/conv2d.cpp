#include "ops/convolution.h"
#include "ops/stress.h"

namespace rekernel {

namespace {

constexpr const char* scaffold_source = R"cuda(
// A thread makes one element of the output.
extern "C" __global__ void convolution(const float* input, const float* weight, const float* bias,
                                       float* output) {
  using namespace problem;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= output_elements) return;
  const int x = i % out_width, y = i / out_width % out_height;
  const int filter = i / (out_width * out_height) % filters;
  const int image = i / (out_width * out_height * filters);
  output[i] = convolve_at(input, weight, bias, image, filter, y, x);
}
)cuda";

Program scaffold(std::int64_t outputs) {
  constexpr std::int64_t threads = 256;
  Program program;
  program.source = scaffold_convolution_source() + scaffold_source;
  program.steps = {simple_launch("convolution", ceil_div(outputs, threads), 1, threads,
                                 buffers({"input", "weight", "bias", "output"}))};
  return program;
}

}  // namespace

Problem make_conv2d(const ConvolutionSizes& sizes) {
  Problem problem;
  problem.id = "conv2d";
  problem.title = "convolution with bias, FP32";
  problem.tensors = convolution_inputs(sizes);
  problem.tensors.push_back({"output",
                             DType::f32,
                             {sizes.batch, sizes.filters, sizes.out_height(), sizes.out_width()},
                             Role::output});
  problem.attributes = convolution_attributes(sizes);
  problem.tolerance = convolution_tolerance();
  problem.stress_cases = convolution_stress_cases(sizes);
  problem.min_bytes = bytes_moved_once(problem.tensors);
  problem.operations = convolution_operations(sizes);
  problem.fewest_matrix_operations = fewest_convolution_operations(sizes);
  problem.matrix_products = 1;
  add_uneven_cases(problem, sizes.width);
  problem.pytorch = "F.conv2d(input, weight, bias, stride, padding)";
  problem.host_oracle = host_convolution;
  problem.device_oracle.source = "#include \"problem.h\"\n" + gemm_source();
  add_convolution(problem.device_oracle, sizes, "truth");
  problem.scaffold = scaffold(problem.output().elements());
  return problem;
}

Problem make_conv2d() { return make_conv2d(catalog_convolution); }

}  // namespace rekernel

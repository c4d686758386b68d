#include <algorithm>

#include "ops/convolution.h"
#include "ops/stress.h"

namespace rekernel {

namespace {

constexpr std::int64_t pool_kernel = 3;
constexpr std::int64_t pool_stride = 2;

constexpr const char* pool_source = R"cuda(
// ReLU and max-pooling in one: the maximum starts at 0.
extern "C" __global__ void relu_maxpool(const double* __restrict__ convolved,
                                        double* __restrict__ truth) {
  using namespace problem;
  const long long i = 1ll * blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= output_elements) return;
  const int x = i % pooled_width, y = i / pooled_width % pooled_height;
  const double* plane = convolved + i / (pooled_width * pooled_height) * out_height * out_width;
  double largest = 0.0;
  for (int dy = 0; dy < pool_kernel; ++dy) {
    for (int dx = 0; dx < pool_kernel; ++dx) {
      const double value = plane[(y * pool_stride + dy) * out_width + x * pool_stride + dx];
      largest = value > largest ? value : largest;
    }
  }
  truth[i] = largest;
}
)cuda";

constexpr const char* scaffold_source = R"cuda(
// A thread makes one element of the output. ReLU comes free: the maximum starts at 0.
extern "C" __global__ void convolution_relu_maxpool(const float* input, const float* weight,
                                                    const float* bias, float* output) {
  using namespace problem;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= output_elements) return;
  const int x = i % pooled_width, y = i / pooled_width % pooled_height;
  const int filter = i / (pooled_width * pooled_height) % filters;
  const int image = i / (pooled_width * pooled_height * filters);
  float largest = 0.0f;
  for (int dy = 0; dy < pool_kernel; ++dy) {
    for (int dx = 0; dx < pool_kernel; ++dx) {
      const float value = convolve_at(input, weight, bias, image, filter, y * pool_stride + dy,
                                      x * pool_stride + dx);
      largest = fmaxf(largest, value);
    }
  }
  output[i] = largest;
}
)cuda";

std::vector<double> host_oracle(const Problem& problem, const HostInputs& inputs) {
  const std::vector<double> convolved = host_convolution(problem, inputs);
  const std::int64_t planes = problem.attribute("batch") * problem.attribute("filters");
  const std::int64_t height = problem.attribute("out_height");
  const std::int64_t width = problem.attribute("out_width");
  std::vector<double> output;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t y = 0; y < problem.attribute("pooled_height"); ++y) {
      for (std::int64_t x = 0; x < problem.attribute("pooled_width"); ++x) {
        double largest = 0.0;  // ReLU
        for (std::int64_t dy = 0; dy < pool_kernel; ++dy) {
          for (std::int64_t dx = 0; dx < pool_kernel; ++dx) {
            const std::int64_t row = plane * height + y * pool_stride + dy;
            largest = std::max(largest, convolved[row * width + x * pool_stride + dx]);
          }
        }
        output.push_back(largest);
      }
    }
  }
  return output;
}

Program device_oracle(const ConvolutionSizes& sizes, std::int64_t outputs) {
  constexpr std::int64_t threads = 256;
  Program program;
  program.source = "#include \"problem.h\"\n" + gemm_source() + pool_source;
  program.workspaces = {{"convolved", sizes.batch * sizes.filters * sizes.out_height() *
                                          sizes.out_width() * size_in_bytes(DType::f64)}};
  add_convolution(program, sizes, "convolved");
  program.steps.push_back(simple_launch("relu_maxpool", ceil_div(outputs, threads), 1, threads,
                                        buffers({"convolved", "truth"})));
  return program;
}

Program scaffold(std::int64_t outputs) {
  constexpr std::int64_t threads = 256;
  Program program;
  program.source = scaffold_convolution_source() + scaffold_source;
  program.steps = {simple_launch("convolution_relu_maxpool", ceil_div(outputs, threads), 1, threads,
                                 buffers({"input", "weight", "bias", "output"}))};
  return program;
}

}  // namespace

Problem make_conv2d_relu_maxpool(const ConvolutionSizes& sizes) {
  const std::int64_t pooled_height = (sizes.out_height() - pool_kernel) / pool_stride + 1;
  const std::int64_t pooled_width = (sizes.out_width() - pool_kernel) / pool_stride + 1;
  const Tensor output{"output",
                      DType::f32,
                      {sizes.batch, sizes.filters, pooled_height, pooled_width},
                      Role::output};
  Problem problem;
  problem.id = "conv2d_relu_maxpool";
  problem.title = "convolution with bias, ReLU, max-pooling, FP32";
  problem.tensors = convolution_inputs(sizes);
  problem.tensors.push_back(output);
  problem.attributes = convolution_attributes(sizes);
  problem.attributes.push_back({"pool_kernel", pool_kernel});
  problem.attributes.push_back({"pool_stride", pool_stride});
  problem.attributes.push_back({"pooled_height", pooled_height});
  problem.attributes.push_back({"pooled_width", pooled_width});
  problem.tolerance = convolution_tolerance();
  problem.stress_cases = convolution_stress_cases(sizes);
  problem.min_bytes = bytes_moved_once(problem.tensors);
  problem.operations = convolution_operations(sizes);
  problem.fewest_matrix_operations = fewest_convolution_operations(sizes);
  problem.matrix_products = 1;
  add_uneven_cases(problem, sizes.width);
  problem.pytorch =
      "F.max_pool2d(F.relu(F.conv2d(input, weight, bias, stride, padding)), pool_kernel, "
      "pool_stride)";
  problem.host_oracle = host_oracle;
  problem.device_oracle = device_oracle(sizes, output.elements());
  problem.scaffold = scaffold(output.elements());
  return problem;
}

Problem make_conv2d_relu_maxpool() { return make_conv2d_relu_maxpool(catalog_convolution); }

}  // namespace rekernel

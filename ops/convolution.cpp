#include "ops/convolution.h"

#include <algorithm>
#include <cmath>

namespace rekernel {

namespace {

/// PyTorch's initialisation of a convolution layer, scaled: U(±scale ÷ √fan-in).
Distribution initialisation(const ConvolutionSizes& sizes, double scale) {
  const double bound =
      scale / std::sqrt(static_cast<double>(sizes.in_channels * sizes.kernel * sizes.kernel));
  return {Distribution::Kind::uniform, -bound, bound};
}

constexpr const char* convolution_source = R"cuda(
// A matrix product: filters x the taps of all channels, times taps x the pixels of all images.
constexpr int kernel_taps = problem::kernel * problem::kernel;
constexpr int pixels = problem::out_height * problem::out_width, all_pixels = problem::batch * pixels;
constexpr int taps = problem::in_channels * kernel_taps, wide_taps = gemm::padded(taps, gemm::depth);
constexpr int wide_pixels = gemm::padded(all_pixels, gemm::columns);

extern "C" __global__ void widen_weight(const float* __restrict__ weight, double* __restrict__ wide_weight) {
  gemm::widen(wide_weight, problem::filters, taps, wide_taps,
              [=](int, int filter, int l) { return to_double(weight[filter * taps + l]); });
}

extern "C" __global__ void unfold_input(const float* __restrict__ input, double* __restrict__ unfolded) {
  using namespace problem;
  gemm::widen(unfolded, taps, all_pixels, wide_pixels, [=](int, int l, int j) {
    const int image = j / pixels, pixel = j % pixels, channel = l / kernel_taps, tap = l % kernel_taps;
    const int y = pixel / out_width * stride - padding + tap / kernel;
    const int x = pixel % out_width * stride - padding + tap % kernel;
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    const long long row = (1ll * image * in_channels + channel) * height + y;
    return inside ? to_double(input[row * width + x]) : 0.0;
  });
}

extern "C" __global__ void __launch_bounds__(gemm::threads, 2)
    convolve(const double* __restrict__ wide_weight, const double* __restrict__ unfolded,
             const float* __restrict__ bias, double* __restrict__ convolved) {
  using namespace problem;
  gemm::multiply<false>(wide_weight, wide_taps, unfolded, wide_pixels, wide_taps,
                        [=](int filter, int j, double sum, double) {
                          if (filter >= filters || j >= all_pixels) return;
                          const int image = j / pixels, pixel = j % pixels;
                          convolved[(1ll * image * filters + filter) * pixels + pixel] =
                              sum + to_double(bias[filter]);
                        });
}
)cuda";

}  // namespace

std::vector<Tensor> convolution_inputs(const ConvolutionSizes& sizes) {
  const Distribution uniform = initialisation(sizes, 1.0);
  return {{"input",
           DType::f32,
           {sizes.batch, sizes.in_channels, sizes.height, sizes.width},
           Role::input},
          {"weight",
           DType::f32,
           {sizes.filters, sizes.in_channels, sizes.kernel, sizes.kernel},
           Role::input,
           uniform},
          {"bias", DType::f32, {sizes.filters}, Role::input, uniform}};
}

std::vector<Attribute> convolution_attributes(const ConvolutionSizes& sizes) {
  return {{"batch", sizes.batch},
          {"in_channels", sizes.in_channels},
          {"height", sizes.height},
          {"width", sizes.width},
          {"filters", sizes.filters},
          {"kernel", sizes.kernel},
          {"stride", sizes.stride},
          {"padding", sizes.padding},
          {"out_height", sizes.out_height()},
          {"out_width", sizes.out_width()}};
}

std::int64_t convolution_operations(const ConvolutionSizes& sizes) {
  return 2 * sizes.batch * sizes.filters * sizes.out_height() * sizes.out_width() *
         sizes.in_channels * sizes.kernel * sizes.kernel;
}

std::int64_t fewest_convolution_operations(const ConvolutionSizes& sizes) {
  // A convolution with stride s is the sum of s × s convolutions without one, each of a share of
  // the input. Winograd's method F(m, r) for m outputs of r taps multiplies m + r − 1 times
  // (Winograd 1980), Fourier's as often: in each direction always more than once for each output,
  // however large the tiles. Transforms are not counted, nor what their rounding would cost.
  const std::int64_t shares = std::min(sizes.kernel, sizes.stride);
  return 2 * sizes.batch * sizes.filters * sizes.out_height() * sizes.out_width() *
         sizes.in_channels * shares * shares;
}

Tolerance convolution_tolerance() {
  // Operands rounded to FP16 or TF32 and FP32 sums give 3e-4 (measured: rms error 1.7e-4 at truth
  // rms 0.58) and, over 29 million outputs, 6 times that at worst.
  Tolerance tolerance;
  tolerance.rms_error_over_rms = 2e-3;
  tolerance.max_error_over_rms = 1e-2;
  return tolerance;
}

std::vector<StressCase> convolution_stress_cases(const ConvolutionSizes& sizes) {
  const auto constant = [](double value) {
    return Distribution{Distribution::Kind::constant, value};
  };
  const auto normal = [](double deviation) {
    return Distribution{Distribution::Kind::normal, 0.0, deviation};
  };
  return {
      // With the bias scaled as well, which would hide the products otherwise.
      {"input_scaled_1e-4", {{"input", normal(1e-4)}, {"bias", initialisation(sizes, 1e-4)}}},
      {"input_scaled_1e4", {{"input", normal(1e4)}}},
      {"constant",
       {{"input", constant(1.1)}, {"weight", constant(0.03)}, {"bias", constant(-0.7)}}},
      {"zeros", {{"input", constant(0.0)}}},  // leaves the bias
  };
}

std::vector<double> host_convolution(const Problem& problem, const HostInputs& inputs) {
  const std::int64_t batch = problem.attribute("batch");
  const std::int64_t channels = problem.attribute("in_channels");
  const std::int64_t height = problem.attribute("height");
  const std::int64_t width = problem.attribute("width");
  const std::int64_t filters = problem.attribute("filters");
  const std::int64_t kernel = problem.attribute("kernel");
  const std::int64_t stride = problem.attribute("stride");
  const std::int64_t padding = problem.attribute("padding");
  const std::int64_t out_height = problem.attribute("out_height");
  const std::int64_t out_width = problem.attribute("out_width");
  const std::vector<double>& input = inputs.at("input");
  const std::vector<double>& weight = inputs.at("weight");
  const std::vector<double>& bias = inputs.at("bias");

  // Sum over the taps of one output, those in the zero padding left out.
  const auto output_at = [&](std::int64_t image, std::int64_t filter, std::int64_t out_y,
                             std::int64_t out_x) {
    double sum = bias[filter];
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      for (std::int64_t ky = 0; ky < kernel; ++ky) {
        const std::int64_t y = out_y * stride - padding + ky;
        if (y < 0 || y >= height) continue;
        for (std::int64_t kx = 0; kx < kernel; ++kx) {
          const std::int64_t x = out_x * stride - padding + kx;
          if (x < 0 || x >= width) continue;
          sum += input[((image * channels + channel) * height + y) * width + x] *
                 weight[((filter * channels + channel) * kernel + ky) * kernel + kx];
        }
      }
    }
    return sum;
  };

  std::vector<double> output;
  output.reserve(static_cast<std::size_t>(batch * filters * out_height * out_width));
  for (std::int64_t image = 0; image < batch; ++image) {
    for (std::int64_t filter = 0; filter < filters; ++filter) {
      for (std::int64_t y = 0; y < out_height; ++y) {
        for (std::int64_t x = 0; x < out_width; ++x) {
          output.push_back(output_at(image, filter, y, x));
        }
      }
    }
  }
  return output;
}

void add_convolution(Program& program, const ConvolutionSizes& sizes,
                     const std::string& convolved) {
  const std::int64_t bytes = size_in_bytes(DType::f64);
  const std::int64_t pixels = sizes.batch * sizes.out_height() * sizes.out_width();
  const std::int64_t wide_pixels = padded_columns(pixels),
                     wide_filters = padded_rows(sizes.filters);
  const std::int64_t wide_taps = padded_depth(sizes.in_channels * sizes.kernel * sizes.kernel);
  program.source += convolution_source;
  program.workspaces.push_back({"wide_weight", wide_filters * wide_taps * bytes});
  program.workspaces.push_back({"unfolded", wide_taps * wide_pixels * bytes});
  program.steps.push_back(
      widen_launch("widen_weight", wide_filters, wide_taps, 1, buffers({"weight", "wide_weight"})));
  program.steps.push_back(
      widen_launch("unfold_input", wide_taps, wide_pixels, 1, buffers({"input", "unfolded"})));
  program.steps.push_back(gemm_launch("convolve", sizes.filters, pixels, 1,
                                      buffers({"wide_weight", "unfolded", "bias", convolved})));
}

std::string scaffold_convolution_source() {
  return R"cuda(#include "problem.h"

__device__ float convolve_at(const float* input, const float* weight, const float* bias, int image,
                             int filter, int y, int x) {
  using namespace problem;
  float sum = bias[filter];
  for (int channel = 0; channel < in_channels; ++channel) {
    for (int dy = 0; dy < kernel; ++dy) {
      for (int dx = 0; dx < kernel; ++dx) {
        const int row = y * stride - padding + dy;
        const int column = x * stride - padding + dx;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        sum += input[((image * in_channels + channel) * height + row) * width + column] *
               weight[((filter * in_channels + channel) * kernel + dy) * kernel + dx];
      }
    }
  }
  return sum;
}
)cuda";
}

}  // namespace rekernel

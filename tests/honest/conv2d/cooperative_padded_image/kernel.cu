// One cooperative launch: pad the images into a workspace, meet, convolve without bounds.

#include <cooperative_groups.h>

#include "problem.h"

namespace {

constexpr int padded_height = problem::height + 2 * problem::padding;
constexpr int padded_width = problem::width + 2 * problem::padding;
constexpr int padded_elements =
    problem::batch * problem::in_channels * padded_height * padded_width;
constexpr int plane = problem::out_height * problem::out_width;
constexpr int together = 4;
constexpr int groups = problem::filters / together;
constexpr int work_items = problem::batch * groups * plane;
constexpr int taps = problem::kernel * problem::kernel;
constexpr int depth = problem::in_channels * taps;
static_assert(problem::filters % together == 0, "whole groups of filters");
static_assert((problem::out_height - 1) * problem::stride + problem::kernel <= padded_height &&
                  (problem::out_width - 1) * problem::stride + problem::kernel <= padded_width,
              "every tap lies inside the padded image");

template <class Function>
__device__ void grid_stride(int count, Function function) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    function(i);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256, 4)
    convolve(const float* input, const float* weight, const float* bias, float* padded,
             float* output) {
  grid_stride(padded_elements, [&](int i) {
    const int x = i % padded_width - problem::padding;
    const int y = i / padded_width % padded_height - problem::padding;
    const int channel = i / (padded_width * padded_height);  // of all images
    const bool inside = x >= 0 && x < problem::width && y >= 0 && y < problem::height;
    padded[i] = inside ? input[(channel * problem::height + y) * problem::width + x] : 0.0f;
  });

  cooperative_groups::this_grid().sync();

  grid_stride(work_items, [&](int i) {
    const int pixel = i % plane;
    const int first_filter = i / plane % groups * together;
    const int image = i / (plane * groups);
    const float* corner = padded + image * problem::in_channels * padded_height * padded_width +
                          pixel / problem::out_width * problem::stride * padded_width +
                          pixel % problem::out_width * problem::stride;
    const float* weights = weight + first_filter * depth;
    float sums[together] = {};
    for (int channel = 0; channel < problem::in_channels; ++channel) {
      for (int ky = 0; ky < problem::kernel; ++ky) {
        for (int kx = 0; kx < problem::kernel; ++kx) {
          const float value = corner[(channel * padded_height + ky) * padded_width + kx];
          const int tap = (channel * problem::kernel + ky) * problem::kernel + kx;
          for (int f = 0; f < together; ++f) {
            sums[f] = fmaf(value, weights[f * depth + tap], sums[f]);
          }
        }
      }
    }
    for (int f = 0; f < together; ++f) {
      output[(image * problem::filters + first_filter + f) * plane + pixel] =
          sums[f] + bias[first_filter + f];
    }
  });
}

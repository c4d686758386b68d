#pragma once

#include <cstdint>

namespace rekernel {

struct ConvolutionSizes {
  std::int64_t batch = 0;
  std::int64_t in_channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t filters = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
};

/// Of the catalog's two convolutions.
inline constexpr ConvolutionSizes catalog_convolution{.batch = 100,
                                                      .in_channels = 3,
                                                      .height = 224,
                                                      .width = 224,
                                                      .filters = 96,
                                                      .kernel = 11,
                                                      .stride = 4,
                                                      .padding = 2};

}  // namespace rekernel

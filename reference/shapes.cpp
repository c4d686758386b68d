#include "reference/shapes.h"

namespace rekernel {

namespace {

void add_row(Extents& extents, std::int64_t value) { extents.insert(extents.begin(), value); }

void add_row(Windows& windows) {
  add_row(windows.window, 1);
  add_row(windows.stride, 1);
  add_row(windows.padding, 0);
}

}  // namespace

Pooling Pooling::as_images() const {
  Pooling images = *this;
  if (in.size() > 1) return images;
  add_row(images.in, 1);
  add_row(images.out, 1);
  add_row(images.windows);
  return images;
}

Convolution Convolution::as_images() const {
  Convolution images = *this;
  if (in.size() > 1) return images;
  add_row(images.in, 1);
  add_row(images.out, 1);
  add_row(images.dilation, 1);
  add_row(images.windows);
  return images;
}

Extents Convolution::x_extents() const {
  Extents extents = {batch, channels};
  extents.insert(extents.end(), in.begin(), in.end());
  return extents;
}

Extents Convolution::weight_extents() const {
  Extents extents =
      transposed ? Extents{channels, filters / groups} : Extents{filters, channels / groups};
  extents.insert(extents.end(), windows.window.begin(), windows.window.end());
  return extents;
}

Extents Convolution::convolved_extents() const {
  Extents extents = {batch, filters};
  extents.insert(extents.end(), out.begin(), out.end());
  return extents;
}

}  // namespace rekernel

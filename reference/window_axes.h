#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/recognition.h"

namespace rekernel {

/// How an image's dimension is read: at stride · (the output's index) + dilation · (the window's
/// index) - padding, transposed at (index + padding - dilation · window's index) / stride.
struct WindowAxis {
  std::int64_t stride = 1, dilation = 1, padding = 0, window = 1;
  std::string window_index;  ///< empty: the window has one place
  bool transposed = false;
};

/// The axes of a read whose first two subscripts are for images and channels, in a statement whose
/// left side has images, channels and the same axes. None where subscripts say something else.
std::optional<std::vector<WindowAxis>> axes_of(const RecognisedProblem& subject,
                                               const definition::CheckedStatement& checked,
                                               const definition::Expression& read,
                                               const definition::Expression& reduction);

/// The places that the axes read, as they are written for output indices "i2", "i3", … and windows
/// "r0", "r1", …
std::string places(const std::vector<WindowAxis>& axes);
/// Which of a transposed convolution's places are an input's.
std::string condition(const std::vector<WindowAxis>& axes);
/// "r0 < 3, r1 < 3" after what comes before.
std::string window_ranges(const std::vector<WindowAxis>& axes, std::string text = "");
/// ", r0, r1"
std::string window_indices(const std::vector<WindowAxis>& axes);

Windows windows_of(const std::vector<WindowAxis>& axes);

}  // namespace rekernel

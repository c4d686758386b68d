#include "reference/window_axes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/normal_form.h"

namespace rekernel {

using definition::CheckedStatement;
using definition::Expression;
using definition::Index;
using definition::Operator;

namespace {

constexpr std::size_t most_image_dimensions = 3;

/// What a subscript says of it.
std::optional<WindowAxis> axis_of(const RecognisedProblem& subject, const CheckedStatement& checked,
                                  const Expression& subscript, const std::string& out_index,
                                  const std::vector<Index>& reduced) {
  WindowAxis axis;
  const Expression* sum = &subscript;
  if (subscript.op == Operator::floor_divide) {
    const auto form = normal_form(subject.definition(), checked.statement, subscript.operands[1]);
    const auto divisor = form ? constant_of(*form) : std::nullopt;
    if (!divisor) return std::nullopt;
    axis.stride = static_cast<std::int64_t>(*divisor);
    axis.transposed = true;
    sum = &subscript.operands[0];
  }
  const auto form = normal_form(subject.definition(), checked.statement, *sum);
  const auto linear = form ? linear_of(*form) : std::nullopt;
  if (!linear || !linear->contains(out_index)) return std::nullopt;
  for (const auto& [name, coefficient] : *linear) {
    if (name.empty() || name == out_index) continue;
    const auto index = std::find_if(reduced.begin(), reduced.end(),
                                    [&, &own = name](const Index& one) { return one.name == own; });
    if (index == reduced.end() || !axis.window_index.empty()) return std::nullopt;
    axis.window_index = name;
    axis.window = index->extent;
    axis.dilation = std::abs(coefficient);
    axis.transposed |= coefficient < 0;
  }
  const std::int64_t of_out = linear->at(out_index);
  if (of_out < 1 || (axis.transposed && of_out != 1)) return std::nullopt;
  if (!axis.transposed) axis.stride = of_out;
  axis.padding = axis.transposed ? linear->at("") : -linear->at("");
  if (axis.padding < 0 || axis.stride < 1 || axis.dilation < 1) return std::nullopt;
  return axis;
}

}  // namespace

std::string places(const std::vector<WindowAxis>& axes) {
  std::string text;
  for (std::size_t t = 0; t < axes.size(); ++t) {
    const WindowAxis& axis = axes[t];
    const std::string out = "i" + std::to_string(t + 2), padding = std::to_string(axis.padding);
    const std::string window = axis.window_index.empty() ? "0" : "r" + std::to_string(t);
    const std::string offset = std::to_string(axis.dilation) + " * " + window;
    const std::string stride = std::to_string(axis.stride);
    text += (t > 0 ? ", " : "") +
            (axis.transposed ? "(" + out + " + " + padding + " - " + offset + ") // " + stride
                             : stride + " * " + out + " + " + offset + " - " + padding);
  }
  return text;
}

std::string condition(const std::vector<WindowAxis>& axes) {
  std::string text;
  for (std::size_t t = 0; t < axes.size(); ++t) {
    const WindowAxis& axis = axes[t];
    const std::string window = axis.window_index.empty() ? "0" : "r" + std::to_string(t);
    text += (t > 0 ? " and (i" : "(i") + std::to_string(t + 2) + " + " +
            std::to_string(axis.padding) + " - " + std::to_string(axis.dilation) + " * " + window +
            ") % " + std::to_string(axis.stride) + " == 0";
  }
  return text;
}

std::string window_ranges(const std::vector<WindowAxis>& axes, std::string text) {
  for (std::size_t t = 0; t < axes.size(); ++t) {
    if (axes[t].window_index.empty()) continue;
    text +=
        (text.empty() ? "r" : ", r") + std::to_string(t) + " < " + std::to_string(axes[t].window);
  }
  return text;
}

std::string window_indices(const std::vector<WindowAxis>& axes) {
  std::string text;
  for (std::size_t t = 0; t < axes.size(); ++t) {
    if (!axes[t].window_index.empty()) text += ", r" + std::to_string(t);
  }
  return text;
}

Windows windows_of(const std::vector<WindowAxis>& axes) {
  Windows windows;
  for (const WindowAxis& axis : axes) {
    windows.window.push_back(axis.window);
    windows.stride.push_back(axis.stride);
    windows.padding.push_back(axis.padding);
  }
  return windows;
}

std::optional<std::vector<WindowAxis>> axes_of(const RecognisedProblem& subject,
                                               const CheckedStatement& checked,
                                               const Expression& read,
                                               const Expression& reduction) {
  const std::vector<Index>& left = checked.statement.indices;
  const std::size_t rank = read.operands.size() - (read.has_otherwise ? 1 : 0);
  if (rank < 3 || rank > 2 + most_image_dimensions || left.size() != rank) return std::nullopt;
  std::vector<WindowAxis> axes;
  for (std::size_t t = 2; t < rank; ++t) {
    const auto axis = axis_of(subject, checked, read.operands[t], left[t].name, reduction.indices);
    if (!axis) return std::nullopt;
    axes.push_back(*axis);
  }
  return axes;
}

}  // namespace rekernel

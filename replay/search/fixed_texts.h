#pragma once

#include <string>
#include <vector>

#include "ops/problem.h"
#include "replay/trajectory/header.h"

namespace rekernel {

/// Defaults for a new search; a recorded one carries its own.
Templates default_templates();
/// A line on a tensor: "- input x: f32 (4096, 65536), normal with mean 0 and deviation 1".
std::string tensor_line(const Tensor& tensor);
/// Tensors, attributes, tolerance and what is timed.
std::string problem_text(const Problem& problem, const std::vector<std::string>& references);
std::string device_text(const DeviceFacts& device);
/// The candidate format with its worked example.
std::string format_text(const std::string& target);

/// The worked example that format_text shows, a correct softmax.
SeedCandidate worked_example();

}  // namespace rekernel

#pragma once

#include <vector>

#include "ops/operators.h"
#include "ops/oracle.h"

namespace rekernel {

// What conv2d and conv2d_relu_maxpool share.

/// input, weight and bias.
std::vector<Tensor> convolution_inputs(const ConvolutionSizes& sizes);

std::vector<Attribute> convolution_attributes(const ConvolutionSizes& sizes);

/// Multiplications and additions of the products; the bias is not counted.
std::int64_t convolution_operations(const ConvolutionSizes& sizes);

/// The fewest of them that any known method needs: see Problem::fewest_matrix_operations.
std::int64_t fewest_convolution_operations(const ConvolutionSizes& sizes);

Tolerance convolution_tolerance();

std::vector<StressCase> convolution_stress_cases(const ConvolutionSizes& sizes);

/// The convolution with bias, (batch, filters, out_height, out_width); sizes from the attributes.
std::vector<double> host_convolution(const Problem& problem, const HostInputs& inputs);

/// Scaffold source, with `problem.h`: `convolve_at(input, weight, bias, image, filter, y, x)`, one
/// element of the convolution with bias in FP32.
std::string scaffold_convolution_source();

/// Adds the convolution with bias to a program whose source has `problem.h` and gemm_source(): from
/// input, weight and bias to the float64 buffer `convolved`.
void add_convolution(Program& program, const ConvolutionSizes& sizes, const std::string& convolved);

}  // namespace rekernel

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/problem.h"
#include "ops/random.h"

namespace rekernel {

/// A 32-bit stream number for a tensor's name, so that tensors of one seed are independent.
std::uint32_t tensor_stream(const std::string& tensor_name);

/// Element `index` of a tensor drawn from `distribution`, rounded to `dtype` (f16 or f32): a pure
/// function of its arguments, bit-identical on every platform and on the GPU (`input_program`).
double input_value(const Distribution& distribution, DType dtype, std::uint64_t seed,
                   std::uint32_t stream, std::uint64_t index);

/// What the draws of a tensor's elements have in common. A defect in the distribution is thrown.
random::Parameters input_parameters(const Distribution& distribution, std::uint64_t seed,
                                    std::uint32_t stream);

/// All input tensors of a problem on the host.
HostInputs host_inputs(const Problem& problem, std::uint64_t seed);

/// CUDA C++ source with the same function, and these extern "C" kernels for dtype T in {f16, f32}:
///   fill_<T>(T* data, unsigned long long count, unsigned long long seed, unsigned stream,
///            the members of random::Parameters, one by one)
///   verify_<T>(const T* data, count, seed, stream, the same, unsigned long long* mismatches)
/// `verify` adds to *mismatches the number of elements whose bits differ from what `fill` writes.
/// Grid-stride loops: any one-dimensional grid and block are correct.
std::string input_device_source();

/// Bit pattern of the nearest (ties to even) binary16, and back.
std::uint16_t to_half_bits(double value);
double from_half_bits(std::uint16_t bits);

}  // namespace rekernel

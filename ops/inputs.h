#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/problem.h"
#include "ops/random.h"

namespace rekernel {

/// A 32-bit stream number for a tensor's name, so that tensors of one seed are independent.
std::uint32_t tensor_stream(const std::string& tensor_name);

/// Element `index` of a tensor drawn from `distribution`, rounded to `dtype`: a pure function of
/// its arguments, bit-identical on every platform and on the GPU (`input_device_source`).
double input_value(const Distribution& distribution, DType dtype, std::uint64_t seed,
                   std::uint32_t stream, std::uint64_t index);

/// What the draws of a tensor's elements have in common. A defect in the distribution is thrown.
random::Parameters input_parameters(const Distribution& distribution, std::uint64_t seed,
                                    std::uint32_t stream);

/// All input tensors of a problem on the host, as a candidate sees them: `Problem::made` is
/// applied.
HostInputs host_inputs(const Problem& problem, std::uint64_t seed);

/// CUDA C++ source with the same function, and these extern "C" kernels for elements of N bytes, 1,
/// 2, 4 or 8, in a Word of that size:
///   fill_<N>(Word* data, unsigned long long count, unsigned long long seed, unsigned stream,
///            random::Parameters, exact::Encoding)
///   verify_<N>(const Word* data, count, seed, stream, parameters, encoding,
///              unsigned long long* mismatches)
/// Beside them, what exact.h has.
/// `verify` adds to *mismatches the number of elements whose bits differ from what `fill` writes.
/// Grid-stride loops: any one-dimensional grid and block are correct.
std::string input_device_source();

}  // namespace rekernel

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/compile/compile.h"
#include "harness/gpu/capability.h"
#include "ops/result.h"

namespace rekernel {

/// The kernels in a cubin, sorted by name, with registers, stack, static shared memory and
/// parameter layout; spills are not in it. From sm_90 on, the static shared memory counts the
/// kilobyte that the system reserves wherever a kernel has any. The bytes are not trusted: a
/// kernel's name is one (is_kernel_name), and there are not more than 65536 of them.
///
/// The format is undocumented. What is read here was observed in the output of CUDA 12 and 13: ELF
/// with one section .nv.info for the file and one .nv.info.<kernel> each, made of small records.
Result<std::vector<KernelResources>> read_cubin(std::string_view cubin);

/// Device memory of the variables outside of functions, in bytes. 0 where it cannot be read, which
/// read_cubin tells.
std::uint64_t static_device_bytes(std::string_view cubin);

/// The compute capability that a cubin was made for. The bytes are not trusted.
Result<ComputeCapability> cubin_capability(std::string_view cubin);

/// The decimal number right before `unit` in a line of the assembler's report ("1528" in "1528
/// bytes spill stores"), or 0. A warning can quote the source, and so say anything: what no kernel
/// can have counts as its limit.
std::int64_t number_before(std::string_view line, std::string_view unit);

/// Takes spills and static shared memory from the assembler's report (ptxas -v) in a compiler's
/// log. Spills of functions that were not inlined count for the kernel that they were compiled for.
void add_assembler_report(std::string_view log, std::vector<KernelResources>& kernels);

}  // namespace rekernel

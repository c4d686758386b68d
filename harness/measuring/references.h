#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/evaluation/reference_source.h"
#include "harness/evaluation/request.h"

namespace rekernel {

/// The references that this program can time: libraries in this process, PyTorch in its own.
ReferenceSource all_references();

/// Ids of the library references of a problem, the headline first.
std::vector<std::string> library_reference_ids(const std::string& problem);

/// The headline alone; empty for a problem that no library solves, whose headline is the first of
/// its PyTorch references.
std::vector<std::string> headline_reference_ids(const std::string& problem);

/// The version of the PyTorch that `python3` here would import.
Result<std::string> installed_pytorch_version();
bool pytorch_is_installed();

/// torch.compile builds its kernels within the run deadline, which is longer beside it. Beside
/// other references a candidate that never ends costs no more than it does alone.
void leave_time_for_torch_compile(EvaluateOptions& options);

/// Ids of a problem's PyTorch references: see pytorch_reference_ids(). `compiled`: torch.compile's
/// too.
std::vector<std::string> pytorch_ids(const Problem& problem, bool compiled = true);

/// Versions of everything that decides a measurement: compiler, driver, libraries.
std::map<std::string, std::string> toolchain_versions();

/// The number of CUDA devices, or why there is none.
Result<int> device_count();

}  // namespace rekernel

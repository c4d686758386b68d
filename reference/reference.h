#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/device/launch.h"
#include "harness/gpu/cuda.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// A library implementation of a problem, named with its math mode.
struct ReferenceInfo {
  std::string id;       ///< "cudnn_fp32"
  std::string problem;  ///< problem id
  std::string title;    ///< "cuDNN convolution, FP32 math"
  bool headline =
      false;  ///< the one that "% of reference" divides by: FP32 math (FP16 for FP16 problems)
};

/// The references of a problem, which its definition decides (shapes.h), the headline first. Needs
/// no GPU. None where no library computes just that.
std::vector<ReferenceInfo> references_of(const Problem& problem);
/// Those of the catalog's problem of this id.
std::vector<ReferenceInfo> references_of(std::string_view problem);
/// The headline's id; nothing for a problem that no library solves.
std::optional<std::string> headline_id(std::string_view problem);

/// Prepares a reference on the current device: library handles, plans, workspaces and the choice of
/// the fastest engine (remembered in cache_directory()/engines). `bindings` holds the problem's
/// tensors by name. The error says which library is missing, or what it refused.
Result<std::unique_ptr<Runnable>> make_reference(const ReferenceInfo& info, const Problem& problem,
                                                 const Bindings& bindings, const Device& device);

/// Loads the library of the references of this id, if it is there: that takes a while and needs
/// no GPU.
void load_library_of(std::string_view id);

/// Library versions found on this machine, for `doctor` and results ("cuBLAS" → "13.0.2").
/// Libraries that are missing are absent.
std::vector<std::pair<std::string, std::string>> reference_library_versions();

}  // namespace rekernel

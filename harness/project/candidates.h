#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "ops/result.h"

namespace rekernel {

/// The committed candidates of `root`, all or those of the named problems ("softmax") and kernels
/// ("softmax/online").
Result<std::vector<Candidate>> committed_candidates(const std::filesystem::path& root,
                                                    const std::vector<std::string>& names = {});

}  // namespace rekernel

#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "ops/result.h"

namespace rekernel {

/// Published percentages of one problem (time of PyTorch ÷ time of the kernel, on the publisher's
/// GPU). Never mixed with measurements.
struct PublishedFigures {
  std::optional<double> percent_of_pytorch_eager;
  std::optional<double> percent_of_torch_compile;
};

/// The figures of `root`/results/published.json by problem id.
Result<std::map<std::string, PublishedFigures>> load_published(const std::filesystem::path& root);

}  // namespace rekernel

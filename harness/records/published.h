#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// Published percentages of one problem (time of PyTorch ÷ time of the kernel, on the publisher's
/// GPU). Never mixed with measurements.
struct PublishedFigures {
  std::optional<double> percent_of_pytorch_eager;
  std::optional<double> percent_of_torch_compile;
  std::string note;  ///< "size not published"
};

/// What was published of the searches as a whole.
struct PublishedSearches {
  int problems = 0;
  int rounds = 0;
  std::vector<std::string> models;
  std::int64_t prompt_tokens = 0;      ///< about
  std::int64_t completion_tokens = 0;  ///< about
  /// Most of the best kernels were first found in one of these rounds.
  std::vector<int> best_found_in_rounds;
};

/// results/published.json, but for the run that stands in a trajectory's header.
struct Published {
  std::string authors, title, publisher, date;
  std::string device;
  std::string meaning;  ///< of the percentages
  std::map<std::string, PublishedFigures> figures;
  std::optional<PublishedSearches> searches;
};
Result<Published> load_published_record(const std::filesystem::path& root);

/// The figures of `root`/results/published.json by problem id.
Result<std::map<std::string, PublishedFigures>> load_published(const std::filesystem::path& root);

}  // namespace rekernel

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/project/scratch_folder.h"
#include "ops/result.h"
#include "replay/report/difference.h"

namespace rekernel {

/// Two texts to be compared.
struct TextPair {
  LabelledText before;
  LabelledText after;
};

/// Compares texts by GNU diff. Many pairs share one process, since starting one takes longer than
/// comparing two kernels, and all of them share files, since a file system may take long to make
/// many new ones.
class TextComparer {
 public:
  /// unified_difference() of each pair, in their order.
  Result<std::vector<std::string>> differences(std::span<const TextPair> pairs);

 private:
  Result<Ok> write(std::span<const TextPair> pairs);
  Result<Ok> compare(std::span<const TextPair> pairs, std::vector<std::string>& differences);

  std::optional<ScratchFolder> scratch_;
  std::size_t files_ = 0;  ///< on each side
};

}  // namespace rekernel

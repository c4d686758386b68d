#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "harness/dataset/make_up.h"
#include "harness/dataset/rows.h"
#include "harness/dataset/search_rows.h"
#include "ops/result.h"

namespace rekernel {

/// What a data set is made of.
struct DatasetSources {
  std::filesystem::path root;                       ///< of the project
  std::vector<std::filesystem::path> trajectories;  ///< in this order
  std::string license = "Apache-2.0";               ///< of what is not imported
  Differences differences = Differences::made;
  /// Told before each part: how many of how many, and what comes.
  std::function<void(std::size_t, std::size_t, const std::string&)> progress;
};

/// Puts every row: searches, committed kernels, imported ones, cheats, mutants, profiles. The same
/// sources give the same rows in the same order. Returns what is said of each search.
Result<std::vector<SearchSummary>> put_all_rows(const DatasetSources& sources, RowStream& rows);

/// Nothing if a data set can be put at `folder`: there is none, or it is empty.
Result<Ok> check_dataset_folder(const std::filesystem::path& folder);

/// Makes the data set in `folder`: Parquet, the data card, Croissant. Everything is made beside it
/// and put there in one step; where that fails, nothing is left. Refuses rows whose texts are not
/// UTF-8 or hold what looks like a secret, by name, and licences that it does not know.
Result<MakeUp> make_dataset(const DatasetSources& sources, const std::filesystem::path& folder);

}  // namespace rekernel

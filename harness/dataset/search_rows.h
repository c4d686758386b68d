#pragma once

#include <filesystem>
#include <string>

#include "harness/dataset/near_duplicates.h"
#include "harness/dataset/rows.h"
#include "ops/result.h"

namespace rekernel {

/// What is said of a search whose rows were put.
struct SearchSummary {
  std::string name;
  std::string problem;
  std::string replies;  ///< how they were obtained
  std::string notes;
  std::vector<std::string> models;
  std::string device;
  std::size_t events = 0;
};

/// Differences to parents are GNU diff's, a process each; whoever only counts rows needs none.
enum class Differences { made, left_out };

/// Puts the rows of a recorded search: candidates, messages, preferences, repairs. It is replayed
/// exactly meanwhile, and held a round at a time. An error where it does not replay to its end;
/// rows were put by then.
Result<SearchSummary> put_search_rows(const std::filesystem::path& trajectory,
                                      const std::string& license, Differences differences,
                                      NearDuplicates& near_duplicates, RowStream& rows);

}  // namespace rekernel

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "ops/result.h"

namespace rekernel {

/// A candidate's row, without its code.
struct ListedRow {
  std::string id;
  std::string name;
  std::string problem;
  std::string sha256;
  std::string status;
  std::string device;
  std::int64_t median_ns = 0;  ///< 0 without a time
};

/// The same with its bytes.
struct DatasetRow {
  ListedRow listed;
  std::string license;
  Candidate candidate;
};

/// Every row of `candidates` in a data set of ours that holds a candidate, in the order of its
/// files. The data set may come from anybody.
Result<std::vector<ListedRow>> list_dataset(const std::filesystem::path& folder);

/// The rows with these ids or names, in this order. Refuses a row whose plan and code are not what
/// its SHA-256 says.
Result<std::vector<DatasetRow>> read_dataset_rows(const std::filesystem::path& folder,
                                                  const std::vector<std::string>& ids);

}  // namespace rekernel

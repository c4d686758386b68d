#pragma once

#include <filesystem>
#include <string>

#include "harness/dataset/near_duplicates.h"
#include "harness/dataset/rows.h"
#include "ops/result.h"

namespace rekernel {

/// Puts a row of `candidates` for every row of results/*/bench.json whose kernel is committed as it
/// was measured. The error names a record that cannot be read.
Result<Ok> put_kernel_rows(const std::filesystem::path& root, const std::string& license,
                           NearDuplicates& near_duplicates, RowStream& rows);

/// The same for every line of results/*/imported.jsonl: other people's kernels that were judged
/// here (imported.h), under the licence that each came with.
Result<Ok> put_imported_rows(const std::filesystem::path& root, NearDuplicates& near_duplicates,
                             RowStream& rows);

}  // namespace rekernel

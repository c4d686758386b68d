#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/records/record.h"
#include "ops/result.h"

namespace rekernel {

/// References in a record that this program does not have for that problem, a line each: their
/// names come from strangers, and are shown everywhere.
std::vector<std::string> unknown_references(const Bench& bench, const std::string& where);

/// load_bench_of, and no references but our own: what every command reads records with.
Result<Bench> load_record(const std::filesystem::path& root, const std::filesystem::path& path);

}  // namespace rekernel

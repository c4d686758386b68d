#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/records/evaluation_contradictions.h"
#include "harness/records/record.h"

namespace rekernel {

/// What evaluation_contradictions.h says of every row of a bench, and of what the file says of all
/// rows. Lines begin with `where` and the row: "results/h200/bench.json: rows[3] (softmax/online):
/// median_ns: …".
std::vector<std::string> contradictions(const Bench& bench, const std::string& where);

/// Between files: a kernel that passed on one device and computed something wrong on another.
std::vector<std::string> contradictions_between(
    const std::vector<std::pair<std::filesystem::path, Bench>>& benches);

}  // namespace rekernel

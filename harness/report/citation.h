#pragma once

#include <filesystem>
#include <string>

#include "harness/records/record.h"
#include "ops/result.h"

namespace rekernel {

/// What a paper says of a recorded row: a sentence with the device, the protocol, both intervals,
/// verdict, badges, errors and the judge's digest.
std::string citation_sentence(const Bench& bench, const BenchRow& row);

/// The program as a BibTeX entry, of the year in which the row was measured.
std::string citation_entry(const BenchRow& row);

/// results/REPORTING.md with both of its example between the page's markers.
Result<std::string> reporting_page(const std::filesystem::path& root);

}  // namespace rekernel

#pragma once

#include <string>

#include "harness/records/record.h"

namespace rekernel {

/// What a paper says of a recorded row: a sentence with the device, the protocol, both intervals,
/// verdict, badges, errors and the judge's digest.
std::string citation_sentence(const Bench& bench, const BenchRow& row, const std::string& version);

/// The program as a BibTeX entry, of the year in which the row was measured.
std::string citation_entry(const BenchRow& row, const std::string& version);

}  // namespace rekernel

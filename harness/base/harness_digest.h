#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/base/judging_sources.h"

namespace rekernel {

/// Digests of the sources from which this program was built; it carries them, not the sources.
const HarnessDigests& harness_digests();

/// What every result carries, so that times taken by different judges can be told apart: digests of
/// the judge, of the problem (`of_problem`, digest_of_problem()) and of the references, joined by
/// hyphens. What is added for other problems or references changes none of the three.
std::string harness_digest(const std::string& of_problem,
                           const std::vector<std::string>& references);

/// "the judge", "reference cudnn_fp32": what has another digest in the other.
std::vector<std::string> differing_sources(const HarnessDigests& one, const HarnessDigests& other);

/// Whether the text is one of those; results from before each row had its own have a digest of
/// everything, sixteen digits.
bool is_row_digest(std::string_view text);

}  // namespace rekernel

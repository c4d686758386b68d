#pragma once

#include <filesystem>
#include <string>

#include "ops/result.h"

namespace rekernel {

/// What every result carries, so that times taken by different judges can be told apart: sixteen
/// hexadecimal digits of the sources that decide a verdict or a time (ops/, reference/ and the
/// rooms of harness/ up to evaluation/), as they were when this program was built.
std::string harness_digest();

/// The same of the sources in a checkout.
Result<std::string> harness_digest_of(const std::filesystem::path& root);

}  // namespace rekernel

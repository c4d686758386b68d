#pragma once

#include <string>
#include <string_view>

namespace rekernel {

/// A licence under which rows can be published.
struct License {
  const char* spdx;  ///< "Apache-2.0"; in lower case, it is what Hugging Face calls it
  const char* url;
};

/// Null for a licence that this program does not know: nothing is published under it.
const License* find_license(std::string_view spdx);
/// "Apache-2.0, MIT, …", for messages.
std::string known_licenses();

}  // namespace rekernel

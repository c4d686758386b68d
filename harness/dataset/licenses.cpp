#include "harness/dataset/licenses.h"

#include <array>

namespace rekernel {

namespace {

// Those of SPDX's list that allow use, change and redistribution, and that Hugging Face lists too.
constexpr std::array licenses{
    License{"Apache-2.0", "https://spdx.org/licenses/Apache-2.0.html"},
    License{"MIT", "https://spdx.org/licenses/MIT.html"},
    License{"BSD-2-Clause", "https://spdx.org/licenses/BSD-2-Clause.html"},
    License{"BSD-3-Clause", "https://spdx.org/licenses/BSD-3-Clause.html"},
    License{"BSL-1.0", "https://spdx.org/licenses/BSL-1.0.html"},
    License{"ISC", "https://spdx.org/licenses/ISC.html"},
    License{"Zlib", "https://spdx.org/licenses/Zlib.html"},
    License{"Unlicense", "https://spdx.org/licenses/Unlicense.html"},
    License{"CC0-1.0", "https://spdx.org/licenses/CC0-1.0.html"},
    License{"CC-BY-4.0", "https://spdx.org/licenses/CC-BY-4.0.html"},
    License{"CC-BY-SA-4.0", "https://spdx.org/licenses/CC-BY-SA-4.0.html"},
};

}  // namespace

const License* find_license(std::string_view spdx) {
  for (const License& license : licenses) {
    if (license.spdx == spdx) return &license;
  }
  return nullptr;
}

std::string known_licenses() {
  std::string names;
  for (const License& license : licenses) {
    names += (names.empty() ? "" : ", ") + std::string(license.spdx);
  }
  return names;
}

}  // namespace rekernel

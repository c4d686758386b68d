#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/profile/profile.h"

namespace rekernel {

/// Gives sampled instructions of a kernel their lines of the source. `disassembly` is what nvdisasm
/// prints of the same code compiled with line numbers (harness/explain/listing.h). An instruction
/// that is another one there stays without a line.
void add_lines(std::vector<SampledInstruction>& instructions, std::string_view disassembly,
               std::string_view kernel);

/// Gives hot instructions with lines the text of them.
void add_source(std::vector<HotInstruction>& hottest, std::string_view source);

}  // namespace rekernel

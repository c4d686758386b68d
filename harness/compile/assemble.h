#pragma once

#include <string>

#include "ops/result.h"

namespace rekernel {

/// What NVIDIA's PTX compiler made of a text: machine code and its report, or what it complains of.
struct Assembled {
  std::string cubin;
  std::string log;
  std::string error;
};

/// Error if this machine has no PTX compiler.
Result<Ok> find_assembler();

/// Assembles PTX for a target ("sm_90a"), in this process. The library that does it (nvJitLink,
/// which holds the PTX compiler) is opened at the first use; an error says that it is missing, and
/// nothing of the text.
Result<Assembled> assemble(const std::string& ptx, const std::string& target);

}  // namespace rekernel

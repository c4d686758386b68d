#pragma once

#include <string>

#include "harness/candidate/candidate.h"
#include "ops/result.h"

namespace rekernel {

/// What the compiler made of a candidate's first module for one target, with line numbers inside.
struct Listing {
  std::string ptx;
  std::string cubin;
};

/// Compiles in a child, as strangers' sources are compiled. An error where it does not compile,
/// where the code is no CUDA C++, and where the child fails.
Result<Listing> make_listing(const Candidate& candidate, const std::string& target);

/// The PTX with the source's lines as comments where the compiler names them.
std::string with_source_lines(const std::string& ptx, const std::string& source);

/// The machine code as assembly with the source's lines, by nvdisasm, which comes with a CUDA
/// toolkit. The error says where it was looked for.
Result<std::string> disassembled(const Listing& listing);

/// The child's side of make_listing(). Returns the exit status.
int run_listing_worker();

}  // namespace rekernel

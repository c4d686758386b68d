#pragma once

#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "ops/problem.h"

namespace rekernel {

/// Works whose length is known to everybody, as candidates for a problem: nothing, waits, and
/// copies of a part and of all that its largest input and its largest output have in common, or,
/// where the outputs are a few numbers, of the input into memory of their own. One source for all.
struct KnownWork {
  std::string name;
  Candidate candidate;
};
std::vector<KnownWork> known_works(const Problem& problem);

}  // namespace rekernel

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "replay/search/reply.h"

namespace rekernel {

/// A candidate of a round, from the request for it to its evaluation.
struct WaveItem {
  std::string id;
  std::string idea_id;
  Idea idea;
  std::string model;
  std::vector<std::string> parents;
  std::shared_ptr<const Candidate> candidate;
  std::string complaint;  ///< why there is no candidate
};

}  // namespace rekernel

#pragma once

#include "replay/search/candidate_memory.h"
#include "replay/search/recording.h"
#include "replay/search/surroundings.h"
#include "replay/trajectory/settings.h"

namespace rekernel {

/// Gets profiles of the candidates that a round's prompts show and records them, one after the
/// other: those in the trajectory come first, then those that the evaluator is asked for.
class ProfileCollector {
 public:
  /// All must outlive it.
  ProfileCollector(const SearchSurroundings& around, SearchRecord& recording,
                   CandidateMemory& memory)
      : around_(around), recording_(recording), memory_(memory) {}

  /// Nothing where the settings want no profiles. A candidate is profiled once.
  void collect(const Settings& settings, int round);

 private:
  void collect(const ShownCandidate& parent);
  Result<ProfileRecord> profile_of(const ShownCandidate& parent);

  const SearchSurroundings& around_;
  SearchRecord& recording_;
  CandidateMemory& memory_;
};

}  // namespace rekernel

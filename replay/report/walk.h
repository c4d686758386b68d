#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/playback/replayer.h"

namespace rekernel {

struct WalkOptions {
  std::optional<int> round;             ///< this one alone; seeds are the round before the first
  std::vector<std::string> candidates;  ///< these alone, if any, without words on rounds
  bool whole_code = false;              ///< whole sources and plans in place of differences
  bool markdown = false;                ///< text for a terminal otherwise
};

/// What a candidate changed of its first parent in the search, as unified differences; empty where
/// nothing changed. The plan's part is what runs: neither the name nor the idea.
struct ChangeOfParent {
  std::string parent;
  std::string source;
  std::string plan;
};

/// The plan without what names and tells of the candidate: every candidate has that of its own.
std::string plan_that_runs(const Candidate& candidate);

/// Nothing where the candidate has no such parent, or no code. Needs a replay that kept the
/// candidates. Fails where GNU diff is missing.
Result<std::optional<ChangeOfParent>> change_of_parent(const ReplayedSearch& search,
                                                       const ReplayedCandidate& candidate);

/// A search candidate by candidate: the idea, what became of it, and its code as the difference to
/// its first parent in the search; the whole of it where there is none. Shows an unfinished search
/// as far as it goes. Needs a replay that kept the candidates. Fails where there is no such round
/// or candidate, and where GNU diff is missing.
Result<std::string> walk(const ReplayedSearch& search, const WalkOptions& options,
                         const Remeasurement* today = nullptr);

}  // namespace rekernel

#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/dataset/round_memory.h"

namespace rekernel {

/// Why one candidate is better than another, by the judge.
struct Advantage {
  /// The verdict alone says so: the other one did not pass. There is no speed-up then.
  bool by_verdict = false;
  double speedup = 0;       ///< the other's share of the reference's time ÷ its own
  double speedup_low = 0;   ///< with both intervals of 95%, the least …
  double speedup_high = 0;  ///< … and the most
};

/// Nothing where neither passed, where the two were timed on different devices or beside different
/// references, or where their times differ by no more than chance: the interval of the speed-up
/// has to leave 1 out. Times are compared as shares of the reference's time in the same run, so
/// that runs with other clocks do not count as progress.
std::optional<Advantage> advantage(const KeptCandidate& better, const KeptCandidate& worse);

/// Pairs of (better, worse): neighbours by rank, and the best with each. So their number grows with
/// the candidates, not with its square. Pairs without an advantage are left out.
struct Preference {
  const KeptCandidate* better = nullptr;
  const KeptCandidate* worse = nullptr;
  Advantage by;
};
std::vector<Preference> preferences_among(std::vector<const KeptCandidate*> candidates);

/// What a row of `messages` tells of the candidates that came of its reply, the best of them first.
void add_what_followed(boost::json::object& row,
                       const std::vector<const KeptCandidate*>& candidates,
                       const std::set<std::string>& survivors);

/// What a row of `preferences` tells of the two beside their texts.
void add_preference_columns(boost::json::object& row, const Preference& preference);

/// The first of them by rank: those that passed first, by time; ties in the given order.
void rank(std::vector<const KeptCandidate*>& candidates);

}  // namespace rekernel

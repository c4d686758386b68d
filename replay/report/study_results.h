#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/records/table.h"
#include "replay/playback/replayer.h"

namespace rekernel {

/// A time, and the candidate that has it.
struct BestOf {
  std::string id;
  int round = 0;  ///< the seed's is 0
  std::int64_t time_ns = 0;
};

/// One line of refinement in a search that branches. It begins with the seed. In each round its try
/// is the first candidate whose prompt showed the line's kernel; a try that passed and is faster
/// becomes the line's kernel. The line ends with the first round of which no prompt shows it.
struct Line {
  std::optional<BestOf> best;  ///< nothing where the seed did not pass
  int rounds = 0;              ///< that it lasted
};

/// What a study takes from one of its searches. Candidates are those that a model wrote.
struct StudiedSearch {
  std::string name;
  std::string problem;
  bool profiled = false;
  bool whole = false;  ///< all its rounds are there
  std::string device;
  std::string reference;  ///< id of the reference beside its candidates; empty without one
  std::int64_t candidates = 0;
  std::int64_t correct = 0;
  std::int64_t seed_ns = 0;    ///< 0: it did not pass
  std::optional<BestOf> best;  ///< the first of the fastest, the seed being one
  /// The fastest up to the end of each round, the one of the seed first.
  std::vector<std::optional<BestOf>> best_so_far;
  std::optional<BestOf> best_of_first_round;  ///< of its candidates alone
  Line line;
  /// Of each candidate, the reference's time in its own run divided by its time; 0: not correct.
  std::vector<double> speedups;

  double best_speedup() const;  ///< 0 without a correct one
};
StudiedSearch studied(const ReplayedSearch& search, bool profiled);

/// fast_p, pass@k and speedup@k over all searches.
struct StudyFigures {
  std::int64_t candidates = 0;
  std::int64_t correct = 0;
  std::vector<std::pair<double, double>> fast_p;  ///< (p, share of the problems)
  /// (k, mean over the problems), k = 1, 2, 4, … as far as every search has candidates.
  std::vector<std::pair<std::int64_t, double>> pass_at;
  std::vector<std::pair<std::int64_t, double>> speedup_at;
  double median_speedup = 0;              ///< of the best of each search
  std::vector<std::int64_t> first_found;  ///< searches by the round of their best
};
/// Needs at least one search.
StudyFigures figures_of(const std::vector<StudiedSearch>& searches);

/// How much longer a time is than the search's best, as 1.25; nothing without either.
std::optional<double> beside_best(const StudiedSearch& search, const std::optional<BestOf>& other);

/// A row for each search: its best, by round, and what branching brought.
Table study_table(const std::vector<StudiedSearch>& searches);
/// The figures in a few sentences, for searches of which none is missing.
std::string study_text(const std::vector<StudiedSearch>& searches);
boost::json::object to_json(const std::vector<StudiedSearch>& searches);

}  // namespace rekernel

#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/records/report.h"
#include "replay/playback/replayer.h"

namespace rekernel {

/// What one round brought.
struct RoundRow {
  int round = 0;
  std::string idea;  ///< of its best kernel, else its first
  std::string best;  ///< id of its fastest correct kernel, empty without one
  std::int64_t best_ns = 0;
  std::int64_t permille_of_reference = 0;
  std::int64_t best_so_far_ns = 0;  ///< over all rounds up to this one, 0 without any
  int candidates = 0;
  std::vector<std::pair<std::string, int>> statuses;  ///< by name, the correct ones first
  std::int64_t today_best_ns = 0;  ///< fastest of the round when measured again; 0 without
};

/// Seeds count as the round before the first.
std::vector<RoundRow> round_rows(const ReplayedSearch& search,
                                 const Remeasurement* today = nullptr);

/// Figures over one trajectory; its kernels are tries at one problem.
struct SearchMetrics {
  std::int64_t candidates = 0;
  std::int64_t correct = 0;
  std::string best;    ///< id of the fastest correct kernel
  int best_round = 0;  ///< the round in which it was found
  std::int64_t best_ns = 0;
  std::int64_t best_permille = 0;
  std::vector<std::pair<std::int64_t, double>>
      pass_at;  ///< (k, pass@k), k = 1, 2, 4, … ≤ candidates
  std::vector<std::pair<std::int64_t, double>> speedup_at;  ///< (k, speedup@k)
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};
/// Seeds are not counted: no model wrote them.
SearchMetrics search_metrics(const ReplayedSearch& search);

/// What was published of this round; null without.
const PublishedRound* published_round(const Header& header, int round);
/// The percentage that follows from the published times, whatever was printed beside them.
std::int64_t published_permille(const Header& header, const PublishedRound& round);

/// What was searched, how far, and where the replies came from: a line or two.
std::string replay_caption(const ReplayedSearch& search);
/// Round by round, with the published run beside it where the header has one.
Table round_table(const ReplayedSearch& search, const Remeasurement* today = nullptr);
/// Where the figures of such a table come from, for a search whose header has a published run.
std::string published_run_caption(const ReplayedSearch& search);
/// Every candidate, recorded and today.
Table remeasured_table(const ReplayedSearch& search, const Remeasurement& today);
/// The metrics in a few lines of text.
std::string metrics_text(const ReplayedSearch& search);
/// One line for every round that would have chosen otherwise.
std::string changed_choices_text(const Remeasurement& today);

/// The whole report.
std::string replay_markdown(const ReplayedSearch& search, const Remeasurement* today = nullptr);
boost::json::object replay_json(const ReplayedSearch& search, const Remeasurement* today = nullptr);

}  // namespace rekernel

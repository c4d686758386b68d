#include "replay/report/study_results.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "replay/trajectory/header.h"

namespace rekernel {
namespace {

/// A candidate that was shown these; without a time it failed.
ReplayedCandidate candidate(const std::string& id, std::optional<std::int64_t> time_ns,
                            std::vector<std::string> parents) {
  ReplayedCandidate one;
  one.id = id;
  one.round = id.starts_with("seed.") ? 0 : id[1] - '0';
  one.parents = std::move(parents);
  one.device = "NVIDIA H200";
  one.outcome.status = time_ns ? Status::passed : Status::wrong_result;
  one.outcome.median_ns = time_ns;
  if (time_ns) {
    one.outcome.reference = "pytorch_eager";
    one.outcome.reference_ns = 1000;
  }
  return one;
}

/// Two rounds of two. The line takes r1.i1.b1, whose kernel no prompt of round 2 shows.
ReplayedSearch branching() {
  ReplayedSearch search;
  search.header.name = "ten-gelu";
  search.header.problem = "gelu";
  search.header.settings.rounds = 2;
  search.candidates = {candidate("seed.1", 4000, {}), candidate("r1.i1.b1", 2000, {"seed.1"}),
                       candidate("r1.i1.b2", 1000, {"seed.1"}),
                       candidate("r2.i1.b1", std::nullopt, {"r1.i1.b2"}),
                       candidate("r2.i1.b2", 500, {"r1.i1.b2", "seed.1"})};
  search.stop_reason = "rounds";
  return search;
}

TEST(StudiedSearch, TakesTheSearchApart) {
  const StudiedSearch search = studied(branching(), true);
  EXPECT_TRUE(search.whole);
  EXPECT_EQ(search.candidates, 4);
  EXPECT_EQ(search.correct, 3);
  EXPECT_EQ(search.seed_ns, 4000);
  EXPECT_EQ(search.best->id, "r2.i1.b2");
  EXPECT_EQ(search.best->round, 2);
  ASSERT_EQ(search.best_so_far.size(), 3u);
  EXPECT_EQ(search.best_so_far[0]->time_ns, 4000);
  EXPECT_EQ(search.best_so_far[1]->id, "r1.i1.b2");
  EXPECT_EQ(search.best_so_far[2]->time_ns, 500);
  EXPECT_EQ(search.best_of_first_round->time_ns, 1000);
  EXPECT_EQ(search.line.best->id, "r1.i1.b1");
  EXPECT_EQ(search.line.rounds, 1);
  EXPECT_EQ(search.speedups, (std::vector<double>{0.5, 1.0, 0.0, 2.0}));
  EXPECT_EQ(beside_best(search, search.line.best), 4.0);
}

TEST(StudiedSearch, FollowsALineThatIsShown) {
  ReplayedSearch search = branching();
  search.candidates[4].parents = {"r1.i1.b2", "r1.i1.b1"};
  EXPECT_EQ(studied(search, false).line.best->id, "r2.i1.b2");
  EXPECT_EQ(studied(search, false).line.rounds, 2);
  // A try that is slower leaves the line where it is.
  search = branching();
  search.candidates[1].outcome.median_ns = 5000;
  search.candidates[3].parents = {"seed.1"};
  EXPECT_EQ(studied(search, false).line.best->id, "seed.1");
  EXPECT_EQ(studied(search, false).line.rounds, 2);
}

TEST(StudiedSearch, CountsNoRoundOfAContinuation) {
  ReplayedSearch search = branching();
  search.candidates.push_back(candidate("r3.i1.b1", 100, {"r2.i1.b2"}));
  const StudiedSearch result = studied(search, false);
  EXPECT_EQ(result.best->time_ns, 500);
  EXPECT_EQ(result.candidates, 4);
}

TEST(StudiedSearch, HoldsNothingWhereNothingPassed) {
  ReplayedSearch search = branching();
  for (ReplayedCandidate& one : search.candidates) {
    one.outcome.status = Status::crashed;
    one.outcome.median_ns.reset();
  }
  const StudiedSearch result = studied(search, false);
  EXPECT_FALSE(result.best);
  EXPECT_FALSE(result.line.best);
  EXPECT_EQ(figures_of({result}).pass_at.front().second, 0.0);
  EXPECT_NE(study_text({result}).find("0 of 4 candidates were right"), std::string::npos);
}

TEST(StudyFigures, AreMeansOverTheProblems) {
  ReplayedSearch failed = branching();
  for (ReplayedCandidate& one : failed.candidates) one.outcome.status = Status::crashed;
  const StudyFigures figures = figures_of({studied(branching(), true), studied(failed, false)});
  EXPECT_EQ(figures.candidates, 8);
  EXPECT_EQ(figures.correct, 3);
  EXPECT_EQ(figures.first_found, (std::vector<std::int64_t>{0, 0, 1}));
  // Three of four are right in one, none in the other.
  EXPECT_DOUBLE_EQ(figures.pass_at[0].second, 0.375);
  EXPECT_DOUBLE_EQ(figures.pass_at[2].second, 0.5);
  EXPECT_DOUBLE_EQ(figures.speedup_at[2].second, 1.0);
  for (const auto& [p, share] : figures.fast_p) EXPECT_EQ(share, p < 2.0 ? 0.5 : 0.0) << p;
  EXPECT_DOUBLE_EQ(figures.median_speedup, 1.0);
}

TEST(StudyTable, ShowsEachSearchByRound) {
  const std::string table = to_markdown(study_table({studied(branching(), true)}));
  EXPECT_NE(table.find("| gelu | yes | 3/4 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| round 2 | 2.00 | 2.00 | 4.00 |"), std::string::npos) << table;
  const std::string text = study_text({studied(branching(), true), studied(branching(), false)});
  for (const char* part :
       {"0, 0 and 2 times", "6 of 8 candidates were right", "the best of round 1 alone takes 2.00",
        "one line of refinement 4.00", "2 of the lines ended", "the difference proves nothing"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace rekernel

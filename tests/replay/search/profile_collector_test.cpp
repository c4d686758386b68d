// Searches whose prompts say what a profiler says of the kernels that they show.

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "harness/problems/catalog.h"
#include "replay/report/status.h"
#include "replay/trajectory/event.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace json = boost::json;
using testing::FakeEvaluator;
using testing::FakeModel;
using testing::lines_of;
using testing::read_text;
using testing::run_on_file;

class ProfiledSearch : public ::testing::Test {
 protected:
  ProfiledSearch() : header_(testing::small_header()) {
    header_.settings.profiles = true;
    const Candidate seed = scaffold_candidate(*find_problem("softmax"), "slow");
    header_.seeds = {{candidate_json(seed), seed.program.source}};
    evaluator_.times["seed.1"] = 900000;
  }

  SearchEnd run() { return run_on_file(path_, header_, model_, evaluator_); }
  std::string title_of_line(std::size_t line) const {
    return event_title(json::parse(lines_of(read_text(path_)).at(line)).as_object());
  }
  std::vector<std::string> titles() const {
    std::vector<std::string> titles;
    for (std::size_t i = 0; i < lines_of(read_text(path_)).size(); ++i) {
      titles.push_back(title_of_line(i));
    }
    return titles;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "t.jsonl";
  Header header_;
  FakeModel model_;
  FakeEvaluator evaluator_;
};

TEST_F(ProfiledSearch, ShowsEachParentsProfileAndReplaysWithoutAProfiler) {
  const SearchEnd end = run();
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  EXPECT_EQ(end.reason, "rounds");
  ASSERT_FALSE(evaluator_.profiled.empty());
  EXPECT_EQ(evaluator_.profiled.front(), "seed.1");
  // Once each, however many rounds show it.
  EXPECT_EQ(std::set<std::string>(evaluator_.profiled.begin(), evaluator_.profiled.end()).size(),
            evaluator_.profiled.size());
  const std::string said =
      "What a profiler (made up) says of it:\nmemory at 12% of its peak, as "
      "of ";
  EXPECT_NE(model_.prompts.at("r1.ideas").find(said + "seed.1\n```json"), std::string::npos)
      << model_.prompts.at("r1.ideas");
  EXPECT_NE(model_.prompts.at("r1.i1.b1").find(said + "seed.1\n"), std::string::npos);

  const Replay replay = replay_exactly(path_);
  ASSERT_FALSE(replay.interruption) << replay.interruption->message;
  EXPECT_EQ(replay.search.profiles.size(), evaluator_.profiled.size());
  EXPECT_EQ(replay.search.profiles.at("seed.1").tool, "made up");
  for (const ReplayedRound& round : replay.search.rounds) {
    // Whatever a round seeds has a profile, but for the last one, which seeds none.
    if (round.round == header_.settings.last_round()) continue;
    for (const std::string& id : round.selection.survivors) {
      EXPECT_TRUE(replay.search.profiles.contains(id)) << id;
    }
  }
}

TEST_F(ProfiledSearch, RecordsAProfileBeforeTheFirstRequestThatShowsIt) {
  run();
  const std::vector<std::string> events = titles();
  const auto place = [&](const std::string& title) {
    return std::find(events.begin(), events.end(), title) - events.begin();
  };
  EXPECT_EQ(place("profile seed.1"), place("selection seeds") + 1);
  EXPECT_EQ(place("request r1.ideas"), place("profile seed.1") + 1);
}

TEST_F(ProfiledSearch, SaysWhyACandidateHasNone) {
  evaluator_.unprofiled = {"seed.1"};
  ASSERT_FALSE(run().interruption);
  EXPECT_NE(model_.prompts.at("r1.ideas").find("\nNo profile: it hung\n"), std::string::npos);
  EXPECT_NE(read_text(path_).find("\"unavailable\":\"it hung\""), std::string::npos);
  EXPECT_FALSE(replay_exactly(path_).interruption);
}

TEST_F(ProfiledSearch, WaitsForAProfilerAndGoesOnWithTheSameFile) {
  FakeEvaluator whole;
  whole.times = evaluator_.times;
  const auto other = folder_ / "other.jsonl";
  ASSERT_FALSE(run_on_file(other, header_, model_, whole).interruption);

  evaluator_.no_profiler = Interruption{Interruption::Kind::waiting, "no profiler"};
  const SearchEnd waiting = run();
  ASSERT_TRUE(waiting.interruption);
  EXPECT_EQ(waiting.interruption->message, "no profiler");
  const Result<SearchStatus> status = search_status(path_);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->awaited_profiles, std::vector<std::string>{"seed.1"});
  EXPECT_NE(status_text(*status, "").find("state: waits for a profile of seed.1"),
            std::string::npos);

  evaluator_.no_profiler.reset();
  ASSERT_FALSE(run().interruption);
  EXPECT_EQ(read_text(path_), read_text(other));
}

TEST_F(ProfiledSearch, NamesAProfileThatWasChangedOrIsTooLong) {
  run();
  const std::string whole = read_text(path_);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    testing::write_text(path_, testing::with_fresh_chain(text));
    const Replay replay = replay_exactly(path_);
    return replay.interruption ? replay.interruption->message : "";
  };
  // A prompt with another text has another hash.
  EXPECT_NE(with("memory at 12% of its peak, as of seed.1", "memory at 99%"), "");
  EXPECT_NE(with("as of seed.1", std::string(max_profile_bytes, 'x')).find("text: "),
            std::string::npos);
  EXPECT_NE(with("\"tool\":\"made up\"", "\"tool\":\"made up\",\"more\":1").find("more"),
            std::string::npos);
}

TEST(Profiles, AreNotAskedForUnlessTheSettingsSaySo) {
  const TemporaryFolder folder;
  FakeModel model;
  FakeEvaluator evaluator;
  ASSERT_FALSE(
      run_on_file(folder / "t.jsonl", testing::small_header(), model, evaluator).interruption);
  EXPECT_TRUE(evaluator.profiled.empty());
  EXPECT_EQ(read_text(folder / "t.jsonl").find("profile"), std::string::npos);
}

TEST(ProfileRecord, IsCutToWhatMayBeRecorded) {
  const ProfileRecord longer{"GPU", "tool", std::string(3 * max_profile_bytes, 'x'), ""};
  const auto read = profile_from_event(profile_event("a", "b", longer), "e");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_LE(read->text.size(), max_profile_bytes);
  EXPECT_LE(estimated_tokens(read->text.size()), 600);
}

}  // namespace
}  // namespace rekernel

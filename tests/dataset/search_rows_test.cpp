#include "harness/dataset/search_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "replay/playback/replayer.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace json = boost::json;

struct Collected : RowStream {
  void put(std::string_view config, Split, const json::object& row) override {
    rows[std::string(config)].push_back(row);
  }
  std::map<std::string, std::vector<json::object>> rows;
};

std::string text_of(const json::value& value) { return std::string(value.as_string()); }

class SearchRows : public ::testing::Test {
 protected:
  Result<SearchSummary> put(const std::filesystem::path& path) {
    NearDuplicates near;
    return put_search_rows(path, "Apache-2.0", Differences::made, near, collected_);
  }

  const json::object& row(const std::string& config, const std::string& name) const {
    for (const json::object& one : collected_.rows.at(config)) {
      if (text_of(one.at("name")) == name) return one;
    }
    throw std::runtime_error("no row " + name);
  }

  TemporaryFolder folder_;
  Collected collected_;
};

TEST_F(SearchRows, HaveEveryCandidateAndEveryReply) {
  testing::recorded_search(folder_ / "t.jsonl", testing::small_header());
  const Result<SearchSummary> summary = put(folder_ / "t.jsonl");
  ASSERT_TRUE(summary) << summary.error().message;
  const Replay replay = replay_exactly(folder_ / "t.jsonl", KeepCandidates::yes);
  ASSERT_EQ(collected_.rows["candidates"].size(), replay.search.candidates.size());
  for (std::size_t i = 0; i < replay.search.candidates.size(); ++i) {
    const ReplayedCandidate& wanted = replay.search.candidates[i];
    const json::object& got = collected_.rows["candidates"][i];
    EXPECT_EQ(text_of(got.at("candidate")), wanted.id);
    EXPECT_EQ(got.at("status"), to_string(wanted.outcome.status));
    EXPECT_EQ(got.contains("code"), wanted.candidate.has_value());
    if (wanted.candidate) {
      EXPECT_EQ(text_of(got.at("sha256")), wanted.sha256);
      EXPECT_EQ(text_of(got.at("code")), wanted.candidate->program.source);
    }
  }
  EXPECT_EQ(summary->events, replay.search.events);
  EXPECT_EQ(summary->models, (std::vector<std::string>{"one", "two"}));
}

TEST_F(SearchRows, PromptsAreThoseThatTheRecordingHashes) {
  const std::string text = testing::recorded_search(folder_ / "t.jsonl", testing::small_header());
  ASSERT_TRUE(put(folder_ / "t.jsonl"));
  std::map<std::string, std::string> hashes;
  for (const std::string& line : testing::lines_of(text)) {
    const json::object event = json::parse(line).as_object();
    if (event.at("event") == "request")
      hashes[text_of(event.at("id"))] = text_of(event.at("prompt_sha256"));
  }
  ASSERT_EQ(collected_.rows["messages"].size(), hashes.size());
  for (const json::object& one : collected_.rows["messages"]) {
    const json::array& turns = one.at("messages").as_array();
    EXPECT_EQ(turns.at(0).at("role"), "user");
    EXPECT_EQ(turns.at(1).at("role"), "assistant");
    EXPECT_EQ(sha256_hex(text_of(turns.at(0).at("content"))),
              hashes.at(text_of(one.at("request"))));
    EXPECT_EQ(text_of(one.at("prompt_sha256")), hashes.at(text_of(one.at("request"))));
  }
}

TEST_F(SearchRows, IdsStayWhenTheSearchGoesOn) {
  Header header = testing::small_header(2);
  testing::recorded_search(folder_ / "short.jsonl", header);
  ASSERT_TRUE(put(folder_ / "short.jsonl"));
  std::set<std::string> before;
  for (const json::object& one : collected_.rows["candidates"])
    before.insert(text_of(one.at("id")));
  collected_.rows.clear();
  header.settings.rounds = 3;
  testing::recorded_search(folder_ / "long.jsonl", header);
  ASSERT_TRUE(put(folder_ / "long.jsonl"));
  std::set<std::string> after;
  for (const json::object& one : collected_.rows["candidates"]) after.insert(text_of(one.at("id")));
  EXPECT_LT(before.size(), after.size());
  EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
}

TEST_F(SearchRows, TellWhatACandidateChangedAndWhetherItSurvived) {
  testing::recorded_search(folder_ / "t.jsonl", testing::small_header());
  ASSERT_TRUE(put(folder_ / "t.jsonl"));
  const Replay replay = replay_exactly(folder_ / "t.jsonl");
  for (const ReplayedRound& round : replay.search.rounds) {
    for (const json::object& one : collected_.rows["candidates"]) {
      if (one.at("round") != round.round) continue;
      const std::string id = text_of(one.at("candidate"));
      const auto& survivors = round.selection.survivors;
      EXPECT_EQ(one.at("survived").as_bool(),
                std::find(survivors.begin(), survivors.end(), id) != survivors.end());
      if (round.round > 1 && one.contains("code")) {
        EXPECT_EQ(text_of(one.at("parent")), "fake/" + text_of(one.at("parents").at(0)));
        EXPECT_TRUE(text_of(one.at("difference")).starts_with("--- ")) << id;
      }
    }
  }
}

TEST_F(SearchRows, ARefusedReplyAndTheNextOneAreARepair) {
  Header header = testing::small_header(1, 1, 1);
  header.settings.tries = 2;
  testing::FakeModel model;
  model.first_replies["r1.i1.b1"] = {"I would rather not."};
  model.replies["r1.i1.b1"] = testing::kernel_reply("good");
  testing::FakeEvaluator evaluator;
  evaluator.gpu_of = [](const std::string&) { return testing::FakeGpu(); };
  evaluator.times["r1.i1.b1"] = 600000;
  testing::run_on_file(folder_ / "t.jsonl", header, model, evaluator);
  const Result<SearchSummary> summary = put(folder_ / "t.jsonl");
  ASSERT_TRUE(summary) << summary.error().message;
  const json::object& first = row("messages", "fake/r1.i1.b1");
  EXPECT_FALSE(text_of(first.at("unusable")).empty());
  const json::object& second = row("messages", "fake/r1.i1.b1#2");
  EXPECT_EQ(second.at("unusable"), "");
  EXPECT_EQ(second.at("status"), "passed");
  ASSERT_EQ(collected_.rows["repairs"].size(), 1u);
  const json::object& repair = collected_.rows["repairs"].front();
  EXPECT_EQ(repair.at("kind"), "asked_again");
  EXPECT_EQ(repair.at("failed_reply"), "I would rather not.");
  EXPECT_EQ(repair.at("failed_message"), first.at("unusable"));
  EXPECT_EQ(text_of(repair.at("repaired_reply")), testing::kernel_reply("good"));
}

TEST_F(SearchRows, AFailureIsMendedByTheSameIdeaOrALaterRound) {
  Header header = testing::small_header(2, 1, 2);
  testing::FakeModel model;
  for (const char* id : {"r1.i1.b1", "r1.i1.b2", "r2.i1.b1", "r2.i1.b2"}) {
    model.replies[id] = testing::kernel_reply(id);
  }
  model.replies["r1.i1.b1"] = "I would rather not.";
  testing::FakeEvaluator evaluator;
  evaluator.gpu_of = [](const std::string&) { return testing::FakeGpu(); };
  for (const char* id : {"r1.i1.b2", "r2.i1.b1", "r2.i1.b2"}) evaluator.times[id] = 600000;
  testing::run_on_file(folder_ / "t.jsonl", header, model, evaluator);
  ASSERT_TRUE(put(folder_ / "t.jsonl"));
  ASSERT_EQ(collected_.rows["repairs"].size(), 1u);
  const json::object& repair = collected_.rows["repairs"].front();
  EXPECT_EQ(repair.at("kind"), "same_idea");
  EXPECT_EQ(repair.at("failed_status"), "invalid_plan");
  EXPECT_EQ(repair.at("repaired_id"), row("candidates", "fake/r1.i1.b2").at("id"));
  const auto& preferences = collected_.rows["preferences"];
  ASSERT_FALSE(preferences.empty());
  EXPECT_EQ(preferences.front().at("by"), "verdict");
  EXPECT_EQ(preferences.front().at("rejected").at(0).at("content"), "I would rather not.");
}

TEST_F(SearchRows, ATrajectoryThatDoesNotReplayIsAnError) {
  std::string text = testing::recorded_search(folder_ / "t.jsonl", testing::small_header());
  text.replace(text.find("Keep the row"), 4, "Lose");
  testing::write_text(folder_ / "t.jsonl", text);
  const Result<SearchSummary> summary = put(folder_ / "t.jsonl");
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().message.find("t.jsonl: line "), std::string::npos)
      << summary.error().message;
}

}  // namespace
}  // namespace rekernel

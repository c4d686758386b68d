#include "replay/report/status.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "replay/trajectory/event.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using testing::FakeEvaluator;
using testing::FakeModel;
using testing::read_text;
using testing::small_header;
using testing::write_text;

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A search with prices and with replies that were asked for again, cut after so many lines.
class StatusOfASearch : public ::testing::Test {
 protected:
  void SetUp() override {
    Header header = small_header(2);
    header.settings.tries = 2;
    header.settings.models[0].prompt_price = "2";
    header.settings.models[0].reply_price = "10.5";
    FakeModel model;
    model.first_replies = {{"r1.i1.b1", {"no kernel yet"}}};
    FakeEvaluator evaluator;
    ASSERT_FALSE(testing::run_on_file(path, header, model, evaluator).interruption);
    lines = testing::lines_of(read_text(path));
  }
  SearchStatus after(std::size_t kept, const std::string& torn = "") {
    write_text(
        path,
        testing::joined(std::vector<std::string>(lines.begin(), lines.begin() + kept)) + torn);
    auto status = search_status(path);
    if (!status) throw std::runtime_error(status.error().message);
    return *status;
  }
  /// The number of lines up to and with the event.
  std::size_t through(const std::string& event, const std::string& id) const {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto value = boost::json::parse(lines[i]).as_object();
      if (event_title(value) == event + " " + id) return i + 1;
    }
    throw std::runtime_error("no " + event + " " + id);
  }

  TemporaryFolder folder;
  const std::filesystem::path path = folder / "t.jsonl";
  std::vector<std::string> lines;
};

TEST_F(StatusOfASearch, OfAFinishedSearchTellsWhatFailedAndWhatItCost) {
  const SearchStatus status = after(lines.size());
  EXPECT_TRUE(status.awaited_replies.empty());
  const std::string text = status_text(status, "");
  EXPECT_TRUE(mentions(text, "state: over (rounds)")) << text;
  EXPECT_TRUE(mentions(text, "r1.i1.b1 of one: the reply has no cuda block")) << text;
  EXPECT_TRUE(mentions(text, "\nfailed candidates:\n")) << text;
  const auto json = status_json(status);
  const auto& one = json.at("models").at(0);
  const ModelUse use = status.search.models.at("one");
  EXPECT_GT(use.unusable, 0);
  EXPECT_DOUBLE_EQ(one.at("cost_usd").as_double(),
                   (2.0 * use.prompt_tokens + 10.5 * use.completion_tokens) / 1e6);
  EXPECT_FALSE(json.at("models").at(1).as_object().contains("cost_usd"));
  // What the recorded search says of all its tokens.
  const auto stop = boost::json::parse(lines.back());
  EXPECT_EQ(stop.at("prompt_tokens"), status.search.prompt_tokens);
  EXPECT_EQ(stop.at("completion_tokens"), status.search.completion_tokens);
}

TEST_F(StatusOfASearch, OfAnUnfinishedSearchTellsWhatItWaitsFor) {
  const SearchStatus replies = after(through("response", "r1.i1.b2"));
  EXPECT_EQ(replies.awaited_replies, (std::vector<std::string>{"r1.i2.b1", "r1.i2.b2"}));
  const std::string text = status_text(replies, folder / "exchange");
  EXPECT_TRUE(mentions(text, "state: waits for 2 replies\nround 1, planned up to 2")) << text;
  EXPECT_TRUE(mentions(text, "the reply to r1.i2.b1: ")) << text;
  EXPECT_TRUE(mentions(text, "exchange/r1.i2.b1.reply.md")) << text;

  const SearchStatus evaluations = after(through("evaluation", "r1.i1.b1"));
  EXPECT_FALSE(evaluations.awaited_evaluations.empty());
  EXPECT_TRUE(evaluations.awaited_replies.empty());
  EXPECT_EQ(status_json(evaluations).at("awaited_evaluations").as_array().size(),
            evaluations.awaited_evaluations.size());
}

TEST_F(StatusOfASearch, TakesEveryBeginningOfAFile) {
  for (std::size_t kept = 1; kept < lines.size(); ++kept) {
    const SearchStatus status = after(kept, lines[kept].substr(0, lines[kept].size() / 2));
    EXPECT_EQ(status.search.events, kept);
    EXPECT_TRUE(status.search.stop_reason.empty());
    EXPECT_FALSE(status_text(status, "").empty());
  }
}

TEST_F(StatusOfASearch, CountsWhatArrivedBeforeItsTurn) {
  const std::size_t kept = through("response", "r1.i1.b1");
  write_text(folder / "t.jsonl.pending",
             "{\"event\":\"response\",\"id\":\"r1.i2.b1\",\"text\":\"\"}\n");
  const SearchStatus status = after(kept);
  EXPECT_EQ(status.awaited_replies, (std::vector<std::string>{"r1.i1.b2", "r1.i2.b2"}));
  EXPECT_EQ(status.arrived, std::vector<std::string>{"r1.i2.b1"});
}

TEST_F(StatusOfASearch, KnowsWhetherTheSearchRuns) {
  const auto trajectory = Trajectory::open(path, Trajectory::Access::append);
  ASSERT_TRUE(trajectory);
  EXPECT_TRUE(search_status(path)->running);
}

TEST_F(StatusOfASearch, RefusesWhatDoesNotReplay) {
  std::string text = read_text(path);
  text.replace(text.find("r1.i1.b1"), 8, "r1.i7.b1");
  write_text(path, text);
  const auto status = search_status(path);
  ASSERT_FALSE(status);
  EXPECT_TRUE(mentions(status.error().message, "expected request r1.i1.b1"))
      << status.error().message;
  EXPECT_FALSE(search_status(folder / "none.jsonl"));
}

}  // namespace
}  // namespace rekernel

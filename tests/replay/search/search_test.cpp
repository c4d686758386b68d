#include "replay/search/search.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <set>

#include "harness/base/files.h"
#include "replay/report/replay_report.h"
#include "replay/search/prompt.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/inspection.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace json = boost::json;
using testing::FakeEvaluator;
using testing::FakeModel;
using testing::read_text;
using testing::recorded_search;
using testing::run_on_file;
using testing::small_header;
using testing::write_text;

std::vector<json::object> events_of(const std::string& text) {
  std::vector<json::object> events;
  for (const std::string& line : testing::lines_of(text)) {
    events.push_back(json::parse(line).as_object());
  }
  return events;
}

std::vector<std::string> titles_of(const std::string& text) {
  std::vector<std::string> titles;
  for (const json::object& event : events_of(text)) titles.push_back(event_title(event));
  return titles;
}

const json::object& find(const std::vector<json::object>& events, const std::string& title) {
  for (const json::object& event : events) {
    if (event_title(event) == title) return event;
  }
  throw std::runtime_error("no " + title);
}

TEST(Search, WritesItsEventsInOneOrder) {
  TemporaryFolder folder;
  const std::string text = recorded_search(folder / "t.jsonl", small_header(1, 2, 1));
  EXPECT_EQ(titles_of(text),
            (std::vector<std::string>{"header", "request r1.ideas", "response r1.ideas",
                                      "request r1.i1.b1", "request r1.i2.b1", "response r1.i1.b1",
                                      "response r1.i2.b1", "evaluation r1.i1.b1",
                                      "evaluation r1.i2.b1", "selection r1", "stop"}));
}

TEST(Search, DoesNotDependOnTheOrderOfArrival) {
  TemporaryFolder folder;
  const std::string text = recorded_search(folder / "0.jsonl", small_header());
  for (unsigned seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(recorded_search(folder / (std::to_string(seed) + ".jsonl"), small_header(), seed),
              text);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "5.jsonl.pending"));
}

TEST(Search, LetsModelsTakeTurns) {
  TemporaryFolder folder;
  const auto events = events_of(recorded_search(folder / "t.jsonl", small_header()));
  EXPECT_EQ(find(events, "request r1.ideas").at("model"), "one");
  EXPECT_EQ(find(events, "request r2.ideas").at("model"), "two");
  EXPECT_EQ(find(events, "request r1.i1.b1").at("model"), "one");
  EXPECT_EQ(find(events, "request r1.i1.b2").at("model"), "two");
}

TEST(Search, ShowsTheFastestKernelsAndTheHistoryToTheNextRound) {
  TemporaryFolder folder;
  FakeModel model;
  std::string prompt;
  class Spy : public Model {
   public:
    Spy(FakeModel& inner, std::string& prompt) : inner_(inner), prompt_(prompt) {}
    std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                    const Arrived& arrived) override {
      if (requests.front().id == "r2.i1.b1") prompt_ = requests.front().prompt.text();
      return inner_.ask(requests, arrived);
    }

   private:
    FakeModel& inner_;
    std::string& prompt_;
  } spy(model, prompt);
  for (const char* id : {"r1.i1.b1", "r1.i1.b2", "r1.i2.b1", "r1.i2.b2"}) {
    model.replies[id] = testing::kernel_reply(id);
  }
  model.replies["r1.i2.b2"] = "no kernel today";
  FakeEvaluator evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", small_header(2), spy, evaluator);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  const auto events = events_of(read_text(folder / "t.jsonl"));
  for (const json::value& survivor : find(events, "selection r1").at("survivors").as_array()) {
    const std::string id(survivor.as_string());
    EXPECT_NE(prompt.find("### Kernel " + id), std::string::npos) << id;
    EXPECT_NE(prompt.find("// " + id + "\n"), std::string::npos) << id;
  }
  EXPECT_NE(prompt.find("- r1.i2.b2 (Fewer passes): invalid_plan: the reply has no cuda block"),
            std::string::npos)
      << prompt;
  EXPECT_EQ(find(events, "request r2.i1.b1").at("prompt_sha256").as_string(), sha256_hex(prompt));
}

TEST(Search, RecordsUnusableRepliesAsFailedCandidates) {
  TemporaryFolder folder;
  FakeModel model;
  model.replies = {{"r1.i1.b1", "prose " + std::string(1 << 20, 'x')},
                   {"r1.i1.b2", "\xff\xfe not text"},
                   {"r1.i2.b1", testing::kernel_reply("a") + testing::kernel_reply("b")},
                   {"r1.i2.b2", std::string(max_reply_bytes + 1, 'x')},
                   {"r1.i1.b3", testing::kernel_reply("good")},
                   {"r1.i2.b3", testing::kernel_reply("good too")}};
  FakeEvaluator evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", small_header(1, 2, 3), model, evaluator);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  EXPECT_EQ(evaluator.evaluated, (std::vector<std::string>{"r1.i1.b3", "r1.i2.b3"}));
  const auto events = events_of(read_text(folder / "t.jsonl"));
  const auto message = [&](const std::string& id) {
    const json::object& event = find(events, "evaluation " + id);
    EXPECT_EQ(event.at("status"), "invalid_plan");
    return std::string(event.at("message").as_string());
  };
  EXPECT_EQ(message("r1.i1.b1"), "the reply has no cuda block; expected exactly one");
  EXPECT_EQ(message("r1.i1.b2"), "the reply is not UTF-8 text");
  EXPECT_EQ(message("r1.i2.b1"), "the reply has 2 cuda blocks; expected exactly one");
  EXPECT_EQ(message("r1.i2.b2"), "the reply has 4194305 bytes; at most 4194304 are recorded");
  EXPECT_EQ(find(events, "response r1.i1.b2").at("text_base64"), "//4gbm90IHRleHQ=");
  EXPECT_EQ(find(events, "response r1.i1.b1").at("text").as_string().size(), (1u << 20) + 6);
  EXPECT_FALSE(replay_exactly(folder / "t.jsonl").interruption);
}

TEST(Search, GoesOnAfterARoundWithoutIdeas) {
  TemporaryFolder folder;
  FakeModel model;
  model.replies = {{"r1.ideas", "Nothing comes to mind."}};
  FakeEvaluator evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", small_header(2), model, evaluator);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  const auto events = events_of(read_text(folder / "t.jsonl"));
  EXPECT_EQ(find(events, "selection r1").at("note"),
            "r1.ideas: the reply has neither a JSON list of ideas nor a numbered list");
  EXPECT_TRUE(find(events, "selection r1").at("survivors").as_array().empty());
  EXPECT_EQ(find(events, "request r2.i1.b1").at("round"), 2);
}

/// Unusable replies first; then, for r1.i1.b2, nothing else.
struct UnusableFirst {
  UnusableFirst() {
    header.settings.tries = 3;
    for (const char* id : {"r1.i1.b1", "r1.i1.b2", "r1.i2.b1", "r1.i2.b2"}) {
      model.replies[id] = testing::kernel_reply(id);
    }
    model.first_replies = {{"r1.ideas", {"Nothing comes to mind."}},
                           {"r1.i1.b1", {"", "```cuda\nint a;\n"}},
                           {"r1.i2.b2", {"\xff"}}};
    model.replies["r1.i1.b2"] = "I would rather not.";
  }
  Header header = small_header(1);
  FakeModel model;
};

TEST(Search, AsksAgainForRepliesThatAreOfNoUse) {
  TemporaryFolder folder;
  UnusableFirst one;
  FakeEvaluator evaluator;
  std::vector<std::string> said;
  SearchObserver observer;
  std::int64_t tokens = 0;
  observer.say = [&](const std::string& text) { said.push_back(text); };
  observer.reply = [&](const ReplyReport& report) { tokens += report.completion_tokens; };
  const SearchEnd end =
      run_on_file(folder / "t.jsonl", one.header, one.model, evaluator, std::move(observer));
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  const std::string text = read_text(folder / "t.jsonl");
  const std::vector<std::string> titles = titles_of(text);
  EXPECT_EQ(
      std::vector<std::string>(titles.begin() + 1, titles.begin() + 17),
      (std::vector<std::string>{
          "request r1.ideas", "unusable r1.ideas", "response r1.ideas", "request r1.i1.b1",
          "request r1.i1.b2", "request r1.i2.b1", "request r1.i2.b2", "unusable r1.i1.b1",
          "unusable r1.i1.b1", "response r1.i1.b1", "unusable r1.i1.b2", "unusable r1.i1.b2",
          "response r1.i1.b2", "response r1.i2.b1", "unusable r1.i2.b2", "response r1.i2.b2"}));
  const auto events = events_of(text);
  EXPECT_EQ(events[8].at("attempt"), 1);
  EXPECT_EQ(events[8].at("reason"), "the reply is empty");
  EXPECT_EQ(events[9].at("attempt"), 2);
  EXPECT_EQ(events[9].at("reason"), "the reply's cuda block is not closed: it was cut off");
  EXPECT_TRUE(find(events, "evaluation r1.i1.b1").contains("sha256")) << "it has a candidate";
  EXPECT_EQ(find(events, "evaluation r1.i1.b2").at("status"), "invalid_plan");
  EXPECT_EQ(find(events, "stop").at("completion_tokens"), tokens);
  ASSERT_EQ(said.size(), 6u);
  EXPECT_EQ(
      said[0],
      "r1.ideas: the reply has neither a JSON list of ideas nor a numbered list; asking again "
      "(2 of 3)");
  EXPECT_FALSE(replay_exactly(folder / "t.jsonl").interruption);
}

TEST(Search, ResumesAmongRepliesThatWereOfNoUse) {
  TemporaryFolder folder;
  UnusableFirst whole;
  FakeEvaluator evaluator;
  run_on_file(folder / "whole.jsonl", whole.header, whole.model, evaluator);
  const std::string text = read_text(folder / "whole.jsonl");
  const std::vector<std::string> lines = testing::lines_of(text);
  for (std::size_t kept = 1; kept < lines.size(); ++kept) {
    write_text(folder / "t.jsonl",
               testing::joined(std::vector<std::string>(lines.begin(), lines.begin() + kept)));
    UnusableFirst again;
    // The replies that are recorded are not given again.
    for (std::size_t i = 0; i < kept; ++i) {
      const json::object event = json::parse(lines[i]).as_object();
      if (event.at("event") != "unusable") continue;
      auto& first = again.model.first_replies[std::string(event.at("id").as_string())];
      if (!first.empty()) first.erase(first.begin());
    }
    const SearchEnd end = run_on_file(folder / "t.jsonl", again.header, again.model, evaluator);
    ASSERT_FALSE(end.interruption) << end.interruption->message;
    EXPECT_TRUE(read_text(folder / "t.jsonl") == text) << kept << " lines kept";
  }
}

TEST(Search, KeepsRefusedRepliesThatWaitForTheirTurn) {
  TemporaryFolder folder;
  UnusableFirst one;
  FakeEvaluator evaluator;
  struct Stopped {};
  // The last request is answered first and the run dies before another.
  class Backwards : public Model {
   public:
    explicit Backwards(FakeModel& inner) : inner_(inner) {}
    std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                    const Arrived& arrived) override {
      if (requests.size() == 1) return inner_.ask(requests, arrived);
      const std::size_t last = requests.size() - 1;
      (void)arrived(last, {"prose"});
      (void)arrived(last, {testing::kernel_reply("late")});
      (void)arrived(last - 1, {"also prose"});
      throw Stopped();
    }

   private:
    FakeModel& inner_;
  } backwards(one.model);
  EXPECT_THROW(run_on_file(folder / "t.jsonl", one.header, backwards, evaluator), Stopped);
  UnusableFirst again;
  const SearchEnd end = run_on_file(folder / "t.jsonl", again.header, again.model, evaluator);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  const auto& asked = again.model.asked;
  EXPECT_EQ(std::count(asked.begin(), asked.end(), "r1.i2.b2"), 0);
  EXPECT_EQ(std::count(asked.begin(), asked.end(), "r1.i2.b1"), 1);
  const auto events = events_of(read_text(folder / "t.jsonl"));
  EXPECT_EQ(find(events, "unusable r1.i2.b2").at("text"), "prose");
  EXPECT_EQ(find(events, "unusable r1.i2.b1").at("text"), "also prose");
  EXPECT_FALSE(replay_exactly(folder / "t.jsonl").interruption);
}

TEST(Search, DoesNotPayBeyondItsBudgetForBetterReplies) {
  TemporaryFolder folder;
  UnusableFirst one;
  one.header.settings.token_budget = 12000;
  for (auto& [id, reply] : one.model.replies) reply = std::string(40000, 'x');
  one.model.first_replies.clear();
  FakeEvaluator evaluator;
  run_on_file(folder / "t.jsonl", one.header, one.model, evaluator);
  EXPECT_EQ(one.model.asked.size(), 5u) << "each kernel once";
  EXPECT_FALSE(replay_exactly(folder / "t.jsonl").interruption);
}

TEST(Search, DetectsAnUnusableReplyThatIsNone) {
  TemporaryFolder folder;
  UnusableFirst one;
  FakeEvaluator evaluator;
  run_on_file(folder / "t.jsonl", one.header, one.model, evaluator);
  const std::string text = read_text(folder / "t.jsonl");
  const auto changed = [&](const auto& change) {
    std::string lines;
    for (const std::string& line : testing::lines_of(text)) {
      json::object event = json::parse(line).as_object();
      change(event);
      lines += json::serialize(event) + "\n";
    }
    write_text(folder / "bad.jsonl", testing::with_fresh_chain(lines));
    const Replay replay = replay_exactly(folder / "bad.jsonl");
    return replay.interruption ? replay.interruption->message : std::string("replayed");
  };
  EXPECT_EQ(changed([](json::object&) {}), "replayed");
  EXPECT_NE(changed([](json::object& event) {
              if (event_title(event) == "unusable r1.ideas") event["text"] = "[\"An idea\"]";
            }).find("unusable r1.ideas differs from what the search makes of"),
            std::string::npos);
  EXPECT_NE(changed([](json::object& event) {
              if (event_title(event) == "response r1.i1.b2") event["event"] = "unusable";
            }).find("expected response r1.i1.b2"),
            std::string::npos);
}

TEST(Search, NamesAWrongNumberOfIdeas) {
  TemporaryFolder folder;
  for (const auto& [reply, said_of_it] : std::map<std::string, std::string>{
           {"[\"a\"]",
            "r1.ideas: the reply has 1 idea, 2 were asked for; the round goes on with "
            "fewer"},
           {"[\"a\", \"b\", \"c\"]",
            "r1.ideas: the reply has 3 ideas, 2 were asked for; the rest is left out"}}) {
    FakeModel model;
    model.replies["r1.ideas"] = reply;
    FakeEvaluator evaluator;
    std::vector<std::string> said;
    SearchObserver observer;
    observer.say = [&](const std::string& text) { said.push_back(text); };
    const auto path = folder / (std::to_string(reply.size()) + ".jsonl");
    run_on_file(path, small_header(1), model, evaluator, std::move(observer));
    ASSERT_EQ(said, std::vector<std::string>{said_of_it});
    const auto events = events_of(read_text(path));
    EXPECT_EQ(events.size() > 15, reply.size() > 6) << "as many kernels as ideas";
    EXPECT_FALSE(replay_exactly(path).interruption);
  }
}

TEST(Search, StartsFromSeedsAndPlans) {
  TemporaryFolder folder;
  Header header = small_header(3, 2, 1);
  header.settings.first_round = 0;
  header.settings.chain = true;
  const auto example = testing::candidate_from_text(testing::kernel_reply("seed"),
                                                    {"softmax", "fake", "s", "i", "sm_90a"});
  ASSERT_TRUE(example);
  header.seeds = {{candidate_json(*example), example->program.source}};
  header.library = {{"gemm", "a good product", "", "// the gemm\n"}};
  header.settings.round_plans = {{0, {"Port it directly. One thread an element."}, {}, {}},
                                 {1, {"First idea"}, std::vector<std::string>{}, {"gemm"}},
                                 {2, {"Second idea"}, std::vector<std::string>{"r0.i1.b1"}, {}}};
  FakeModel model;
  for (const char* id : {"r0.i1.b1", "r1.i1.b1", "r2.i1.b1"}) {
    model.replies[id] = testing::kernel_reply(id);
  }
  FakeEvaluator evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", header, model, evaluator);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  const auto events = events_of(read_text(folder / "t.jsonl"));
  EXPECT_EQ(event_title(events[1]), "evaluation seed.1");
  EXPECT_EQ(event_title(events[2]), "selection seeds");
  EXPECT_EQ(model.asked, (std::vector<std::string>{"r0.i1.b1", "r1.i1.b1", "r2.i1.b1"}));
  const auto parents = [&](const char* title) {
    return canonical_json(find(events, title).at("parents"));
  };
  EXPECT_EQ(parents("request r1.i1.b1"), "[\"gemm\"]");
  EXPECT_EQ(parents("request r2.i1.b1"), "[\"r0.i1.b1\"]");
  EXPECT_EQ(find(events, "request r0.i1.b1").at("idea"), "Port it directly");
  EXPECT_FALSE(replay_exactly(folder / "t.jsonl").interruption);
}

TEST(Search, StopsAtItsTokenBudget) {
  TemporaryFolder folder;
  Header header = small_header(3);
  header.settings.token_budget = 20000;
  FakeModel model;
  FakeEvaluator evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", header, model, evaluator);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  EXPECT_EQ(end.reason, "token_budget");
  const auto events = events_of(read_text(folder / "t.jsonl"));
  EXPECT_EQ(events.back().at("reason"), "token_budget");
  EXPECT_LE(events.back().at("prompt_tokens").as_int64(), 20000);
  EXPECT_FALSE(replay_exactly(folder / "t.jsonl").interruption);
}

TEST(Search, StopsAtItsDeadlineAndReplaysThat) {
  TemporaryFolder folder;
  FakeModel model;
  FakeEvaluator evaluator;
  int asked = 0;
  const SearchEnd end = run_on_file(folder / "t.jsonl", small_header(), model, evaluator, {},
                                    [&] { return ++asked > 3; });
  EXPECT_EQ(end.reason, "deadline");
  const Replay replay = replay_exactly(folder / "t.jsonl");
  EXPECT_FALSE(replay.interruption) << replay.interruption->message;
  EXPECT_EQ(replay.search.stop_reason, "deadline");
  // A finished search stays finished, whatever the clock says.
  FakeModel idle;
  EXPECT_EQ(run_on_file(folder / "t.jsonl", small_header(), idle, evaluator).reason, "deadline");
  EXPECT_TRUE(idle.asked.empty());
}

TEST(Search, StopsWhenAPersonWantsNoNewRequestAndReplaysThat) {
  TemporaryFolder folder;
  const std::string whole = recorded_search(folder / "whole.jsonl", small_header());
  // What was recorded when the first round was over: the second's first request is not there yet.
  const std::size_t second_round = whole.find("r2.ideas");
  ASSERT_NE(second_round, std::string::npos);
  write_text(folder / "t.jsonl", whole.substr(0, whole.rfind('\n', second_round) + 1));
  FakeModel idle;
  FakeEvaluator evaluator;
  const SearchEnd end =
      run_on_file(folder / "t.jsonl", small_header(), idle, evaluator, {}, {}, true);
  EXPECT_EQ(end.reason, "stopped");
  EXPECT_TRUE(idle.asked.empty());
  const Replay replay = replay_exactly(folder / "t.jsonl");
  EXPECT_FALSE(replay.interruption) << replay.interruption->message;
  EXPECT_EQ(replay.search.stop_reason, "stopped");
}

TEST(Search, GoesOnAfterAStopAsIfItHadNotStopped) {
  TemporaryFolder folder;
  Header header = small_header(1);
  const auto seed = testing::candidate_from_text(testing::kernel_reply("seed"),
                                                 {"softmax", "fake", "s", "i", "sm_90a"});
  ASSERT_TRUE(seed);
  header.seeds = {{candidate_json(*seed), seed->program.source}};
  const std::string one_round = recorded_search(folder / "t.jsonl", header);
  const Continuation longer{.rounds = 3,
                            .round_plans = {{.round = 2,
                                             .ideas = {"Use wider loads. All of them."},
                                             .parents = std::vector<std::string>{"seed.1"}}},
                            .notes = "two more"};
  FakeModel model;
  FakeEvaluator evaluator;
  const SearchEnd end =
      run_on_file(folder / "t.jsonl", header, model, evaluator, {}, {}, false, longer);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  EXPECT_EQ(end.reason, "rounds");
  const std::string text = read_text(folder / "t.jsonl");
  EXPECT_TRUE(text.starts_with(one_round));
  EXPECT_EQ(model.asked.front(), "r2.i1.b1");  // the idea was laid down
  EXPECT_EQ(model.asked.back().substr(0, 2), "r3");
  const Replay replay = replay_exactly(folder / "t.jsonl");
  ASSERT_FALSE(replay.interruption) << replay.interruption->message;
  EXPECT_EQ(replay.search.rounds.back().round, 3);
  // Resumed from any whole line, it ends the same.
  const std::vector<std::string> lines = testing::lines_of(text);
  for (std::size_t kept = testing::lines_of(one_round).size(); kept < lines.size(); ++kept) {
    write_text(folder / "cut.jsonl",
               testing::joined(std::vector<std::string>(lines.begin(), lines.begin() + kept)));
    FakeModel again;
    run_on_file(folder / "cut.jsonl", header, again, evaluator, {}, {}, false, longer);
    EXPECT_TRUE(read_text(folder / "cut.jsonl") == text) << kept << " lines kept";
  }
}

/// A search that a person stopped before its second round.
void record_stopped_search(const std::filesystem::path& path) {
  const std::string whole = recorded_search(path, small_header());
  const std::size_t second_round = whole.find("r2.ideas");
  write_text(path, whole.substr(0, whole.rfind('\n', second_round) + 1));
  FakeModel idle;
  FakeEvaluator evaluator;
  run_on_file(path, small_header(), idle, evaluator, {}, {}, true);
}

TEST(Search, FollowsAPlanForTheRoundBeforeWhichItStopped) {
  TemporaryFolder folder;
  record_stopped_search(folder / "t.jsonl");
  FakeEvaluator evaluator;
  const Continuation planned{.rounds = 3,
                             .round_plans = {{.round = 2, .ideas = {"Use wider loads."}}}};
  FakeModel model;
  const SearchEnd end =
      run_on_file(folder / "t.jsonl", small_header(), model, evaluator, {}, {}, false, planned);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  ASSERT_FALSE(model.asked.empty());
  EXPECT_EQ(model.asked.front(), "r2.i1.b1");
  const Replay replay = replay_exactly(folder / "t.jsonl");
  EXPECT_FALSE(replay.interruption) << replay.interruption->message;
}

TEST(Search, GoesOnUnchangedAfterAPersonsStopAndNotAfterItsLimit) {
  TemporaryFolder folder;
  record_stopped_search(folder / "t.jsonl");
  FakeEvaluator evaluator;
  const Continuation unchanged{.rounds = small_header().settings.rounds};
  FakeModel model;
  const SearchEnd end =
      run_on_file(folder / "t.jsonl", small_header(), model, evaluator, {}, {}, false, unchanged);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  EXPECT_EQ(end.reason, "rounds");
  EXPECT_FALSE(model.asked.empty());
  const Replay replay = replay_exactly(folder / "t.jsonl");
  ASSERT_FALSE(replay.interruption) << replay.interruption->message;
  EXPECT_EQ(replay.search.rounds.back().round, small_header().settings.rounds);
  const std::string text = read_text(folder / "t.jsonl");
  FakeModel idle;
  run_on_file(folder / "t.jsonl", small_header(), idle, evaluator, {}, {}, false, unchanged);
  EXPECT_EQ(read_text(folder / "t.jsonl"), text);
}

TEST(Search, RefusesAContinuationThatItCannotFollow) {
  TemporaryFolder folder;
  const std::string text = recorded_search(folder / "t.jsonl", small_header(1));
  const Continuation unknown_parent{
      .rounds = 2, .round_plans = {{.round = 2, .parents = std::vector<std::string>{"r1.i9.b9"}}}};
  FakeModel idle;
  FakeEvaluator evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", small_header(1), idle, evaluator, {}, {},
                                    false, unknown_parent);
  ASSERT_TRUE(end.interruption);
  EXPECT_NE(end.interruption->message.find("got \"r1.i9.b9\""), std::string::npos)
      << end.interruption->message;
  EXPECT_TRUE(idle.asked.empty());
  EXPECT_EQ(read_text(folder / "t.jsonl"), text);
}

/// Every kernel of two rounds is a good one.
struct GoodModel : FakeModel {
  GoodModel() {
    for (const char* round : {"r1", "r2"}) {
      for (const char* end : {".i1.b1", ".i1.b2", ".i2.b1", ".i2.b2"}) {
        replies[std::string(round) + end] = testing::kernel_reply(std::string(round) + end);
      }
    }
  }
};

/// Two kinds of GPU: what takes 0.9 ms on the slower one, whose reference takes 2 ms, is better
/// than 0.6 ms on the other, where the reference takes 1 ms.
struct TwoKinds : FakeEvaluator {
  TwoKinds() {
    for (const char* round : {"r1", "r2"}) {
      for (const char* branch : {".b1", ".b2"}) {
        times[round + std::string(".i1") + branch] = 600000;
        times[round + std::string(".i2") + branch] = 900000;
      }
    }
    gpu_of = [](const std::string& id) {
      return id.find(".i2.") != std::string::npos ? testing::FakeGpu{"NVIDIA H100", 2000000}
                                                  : testing::FakeGpu{};
    };
  }
};

TEST(Search, ComparesSharesOfTheReferenceWhereGpusDiffer) {
  TemporaryFolder folder;
  Header header = small_header(2);
  header.settings.mixed_gpus = true;
  GoodModel model;
  TwoKinds evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", header, model, evaluator);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  const Replay replay = replay_exactly(folder / "t.jsonl");
  ASSERT_FALSE(replay.interruption) << replay.interruption->message;
  std::set<std::string> devices;
  for (const ReplayedCandidate& one : replay.search.candidates) devices.insert(one.device);
  EXPECT_TRUE(devices.contains("NVIDIA H100") && devices.contains("NVIDIA H200"));
  const ReplayedRound& first = replay.search.rounds.front();
  ASSERT_FALSE(first.selection.survivors.empty());
  EXPECT_EQ(first.selection.survivors.front().substr(0, 5), "r1.i2");
  EXPECT_EQ(search_metrics(replay.search).best.substr(0, 5), "r1.i2");
  EXPECT_EQ(search_metrics(replay.search).best_ns, 900000);
  EXPECT_EQ(round_rows(replay.search).back().best_so_far_ns, 900000);
  // A model is told where a time was taken.
  EXPECT_NE(model.prompts.at("r2.ideas").find("% of cudnn_softmax"), std::string::npos);
  EXPECT_NE(model.prompts.at("r2.ideas").find(", on NVIDIA H100"), std::string::npos);
}

TEST(Search, RecordsNothingOfAGpuThatItCannotCompareWith) {
  TemporaryFolder folder;
  const Header header = small_header(2);
  GoodModel model;
  TwoKinds evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", header, model, evaluator);
  ASSERT_TRUE(end.interruption);
  EXPECT_EQ(end.interruption->kind, Interruption::Kind::failed);
  EXPECT_NE(end.interruption->message.find("was made on an NVIDIA H100, the others on an NVIDIA "
                                           "H200: their times cannot be compared"),
            std::string::npos)
      << end.interruption->message;
  EXPECT_EQ(read_text(folder / "t.jsonl").find("NVIDIA H100"), std::string::npos);
  EXPECT_EQ(*timed_on(folder / "t.jsonl"), "NVIDIA H200");
  // With the one kind it goes on, to what it would have been.
  FakeEvaluator one_kind;
  one_kind.times = evaluator.times;
  const SearchEnd resumed = run_on_file(folder / "t.jsonl", header, model, one_kind);
  ASSERT_FALSE(resumed.interruption) << resumed.interruption->message;
  EXPECT_FALSE(replay_exactly(folder / "t.jsonl").interruption);
  // On resuming, the kind is known from what is recorded.
  std::vector<std::string> lines = testing::lines_of(read_text(folder / "t.jsonl"));
  const auto is_evaluation = [](const std::string& line) {
    return line.find("\"device\":\"NVIDIA H200\"") != std::string::npos;
  };
  lines.erase(std::find_if(lines.begin(), lines.end(), is_evaluation) + 1, lines.end());
  testing::write_text(folder / "u.jsonl", testing::joined(lines));
  FakeEvaluator other_kind;
  other_kind.gpu_of = [](const std::string&) { return testing::FakeGpu{"NVIDIA H100", 2000000}; };
  const SearchEnd moved = run_on_file(folder / "u.jsonl", header, model, other_kind);
  ASSERT_TRUE(moved.interruption);
  EXPECT_EQ(read_text(folder / "u.jsonl").find("NVIDIA H100"), std::string::npos);
}

TEST(Search, RefusesToGoOnWithAnotherHeader) {
  TemporaryFolder folder;
  const std::string text = recorded_search(folder / "t.jsonl", small_header(1));
  FakeModel model;
  FakeEvaluator evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", small_header(2), model, evaluator);
  ASSERT_TRUE(end.interruption);
  EXPECT_EQ(end.interruption->kind, Interruption::Kind::mismatch);
  EXPECT_EQ(read_text(folder / "t.jsonl"), text);
}

TEST(Search, RecordsAChangeOfEndpointsWhereItBecomesTrue) {
  TemporaryFolder folder;
  const Header header = small_header(2);
  const std::string whole = recorded_search(folder / "whole.jsonl", header);
  const std::vector<std::string> lines = testing::lines_of(whole);
  std::vector<ModelSettings> endpoints = header.settings.models;
  endpoints[1].base_url = "https://example.com/v1";
  for (std::size_t kept = 1; kept < lines.size(); ++kept) {
    write_text(folder / "t.jsonl",
               testing::joined(std::vector<std::string>(lines.begin(), lines.begin() + kept)));
    FakeModel model;
    FakeEvaluator evaluator;
    for (int run = 0; run < 2; ++run) {
      Result<Trajectory> trajectory =
          Trajectory::open(folder / "t.jsonl", Trajectory::Access::append);
      ASSERT_TRUE(trajectory);
      SearchSurroundings around{*trajectory, nullptr, model, evaluator};
      around.endpoints = endpoints;
      const SearchEnd end = run_search(header, std::move(around));
      ASSERT_FALSE(end.interruption) << end.interruption->message;
    }
    const std::string text = read_text(folder / "t.jsonl");
    std::size_t changes = 0;
    for (const std::string& title : titles_of(text)) changes += title == "endpoints";
    EXPECT_EQ(changes, model.asked.empty() ? 0u : 1u);
    const Replay replay = replay_exactly(folder / "t.jsonl");
    ASSERT_FALSE(replay.interruption) << replay.interruption->message;
    EXPECT_EQ(replay.search.rounds.size(), 2u);
  }
}

TEST(Search, ForgetsKernelsThatNoPromptCanShowAgain) {
  // What a prompt shows stays bounded while the history grows by lines alone.
  TemporaryFolder folder;
  Header header = small_header(30, 1, 1);
  header.settings.prompt_tokens = 8000;
  std::size_t longest = 0;
  class Measure : public FakeModel {
   public:
    explicit Measure(std::size_t& longest) : longest_(longest) {}
    std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                    const Arrived& arrived) override {
      for (const ModelRequest& one : requests) longest_ = std::max(longest_, one.prompt.size());
      return FakeModel::ask(requests, arrived);
    }

   private:
    std::size_t& longest_;
  } model(longest);
  FakeEvaluator evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", header, model, evaluator);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  EXPECT_LE(estimated_tokens(longest), 8000);
}

}  // namespace
}  // namespace rekernel

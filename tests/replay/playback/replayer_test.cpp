#include "replay/playback/replayer.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <ctime>

#include "replay/report/replay_report.h"
#include "replay/trajectory/event.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace json = boost::json;
using testing::FakeEvaluator;
using testing::FakeModel;
using testing::joined;
using testing::lines_of;
using testing::recorded_search;
using testing::small_header;
using testing::with_fresh_chain;
using testing::write_text;
using Kind = Interruption::Kind;

class ExactReplay : public ::testing::Test {
 protected:
  Replay replay(const std::string& text) {
    write_text(folder / "edited.jsonl", text);
    return replay_exactly(folder / "edited.jsonl");
  }
  /// The line at which a replay found a difference.
  std::string difference(const std::string& text) {
    const Replay result = replay(text);
    if (!result.interruption) return "none";
    return result.interruption->message.substr((folder / "edited.jsonl").string().size() + 2);
  }

  TemporaryFolder folder;
  const std::string recorded = recorded_search(folder / "t.jsonl", small_header(2));
};

TEST_F(ExactReplay, ReproducesEveryByte) {
  const Replay result = replay(recorded);
  ASSERT_FALSE(result.interruption) << result.interruption->message;
  EXPECT_EQ(result.search.events, lines_of(recorded).size());
  EXPECT_EQ(result.search.stop_reason, "rounds");
  EXPECT_EQ(result.search.candidates.size(), 8u);
}

TEST_F(ExactReplay, CandidatesKnowTheKernelsThatTheirPromptsShowed) {
  std::map<std::string, std::vector<std::string>> recorded_parents;
  for (const std::string& line : lines_of(recorded)) {
    const json::object event = json::parse(line).as_object();
    if (event.at("event") != "request") continue;
    std::vector<std::string>& ids = recorded_parents[std::string(event.at("id").as_string())];
    for (const json::value& id : event.at("parents").as_array()) ids.emplace_back(id.as_string());
  }
  const Replay result = replay(recorded);
  bool some = false;
  for (const ReplayedCandidate& one : result.search.candidates) {
    EXPECT_EQ(one.parents, recorded_parents.at(one.id)) << one.id;
    EXPECT_TRUE(one.record.empty()) << one.id;
    some = some || !one.parents.empty();
  }
  EXPECT_TRUE(some);
}

/// Calls `use` with every variant of a value in which one leaf, or one member, is another.
void mutate(json::value& value, const std::function<void()>& use) {
  if (auto* object = value.if_object()) {
    for (auto& member : *object) mutate(member.value(), use);
    const std::vector<std::string> keys = [&] {
      std::vector<std::string> result;
      for (const auto& member : *object) result.emplace_back(member.key());
      return result;
    }();
    const json::object whole = *object;
    for (const std::string& key : keys) {
      object->erase(key);
      use();
      *object = whole;
    }
    (*object)["added"] = 1;
    use();
    *object = whole;
  } else if (auto* array = value.if_array()) {
    for (json::value& entry : *array) mutate(entry, use);
    const json::array whole = *array;
    array->push_back("added");
    use();
    *array = whole;
    if (!whole.empty()) {
      array->pop_back();
      use();
      *array = whole;
    }
  } else {
    const json::value whole = value;
    if (whole.is_string()) value = std::string(whole.get_string()) + " ";
    if (whole.is_int64()) value = whole.get_int64() + 1;
    if (whole.is_uint64()) value = whole.get_uint64() - 1;
    if (whole.is_bool()) value = !whole.get_bool();
    if (whole.is_null()) value = "something";
    use();
    value = whole;
  }
}

TEST_F(ExactReplay, CatchesAMutationOfAnyField) {
  const std::vector<std::string> lines = lines_of(recorded);
  std::size_t mutations = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    json::value event = json::parse(lines[i]);
    mutate(event, [&] {
      std::vector<std::string> edited = lines;
      edited[i] = canonical_json(event) + "\n";
      const Replay result = replay(joined(edited));
      ASSERT_TRUE(result.interruption) << "line " << i + 1 << ": " << edited[i];
      EXPECT_NE(result.interruption->message.find("line " + std::to_string(i + 1)),
                std::string::npos)
          << result.interruption->message;
      ++mutations;
    });
  }
  EXPECT_GT(mutations, 500u);
}

/// The same, by somebody who also computed the chain again.
class ForgedReplay : public ExactReplay {
 protected:
  std::string forged(const std::string& title, const std::function<void(json::object&)>& edit) {
    std::vector<std::string> lines = lines_of(recorded);
    for (std::string& line : lines) {
      json::object event = json::parse(line).as_object();
      if (event_title(event) != title) continue;
      edit(event);
      line = canonical_json(event) + "\n";
    }
    return difference(with_fresh_chain(joined(lines)));
  }
  std::string passed_candidate() {
    for (const ReplayedCandidate& one : replay(recorded).search.candidates) {
      if (one.outcome.passed() && one.round == 1) return one.id;
    }
    return "";
  }
};

TEST_F(ForgedReplay, IsCaughtWhereEventsFollowFromOthers) {
  const std::string id = passed_candidate();
  ASSERT_FALSE(id.empty());
  const auto expect_caught = [&](const std::string& title, auto edit, const std::string& at) {
    const std::string message = forged(title, edit);
    EXPECT_EQ(message.substr(message.find(": ") + 2, at.size()), at) << message;
    EXPECT_NE(message.find("\n  recorded: "), std::string::npos) << message;
    EXPECT_NE(message.find("\n  replayed: "), std::string::npos) << message;
  };
  expect_caught(
      "request " + id, [](json::object& event) { event["prompt_sha256"] = "0"; },
      "request " + id + " differs");
  expect_caught(
      "evaluation " + id, [](json::object& event) { event["sha256"] = "0"; },
      "evaluation " + id + " differs");
  expect_caught(
      "selection r1", [](json::object& event) { event["survivors"] = json::array{}; },
      "selection r1 differs");
  // A time shows up in the prompts of the next round.
  expect_caught(
      "evaluation " + id,
      [](json::object& event) {
        std::int64_t& time = event.at("timing").as_object().at("median_ns").as_int64();
        time -= 1000;
      },
      "request r2.ideas differs");
  // A reply makes another candidate.
  expect_caught(
      "response " + id,
      [](json::object& event) {
        event["text"] = testing::kernel_reply("something else");
        event["completion_tokens"] = estimated_tokens(event.at("text").as_string().size());
      },
      "evaluation " + id + " differs");
  expect_caught(
      "header",
      [](json::object& event) {
        std::string text(event.at("templates").at("ideas").as_string());
        event.at("templates").as_object()["ideas"] = text + "Hurry.";
      },
      "request r1.ideas differs");
}

TEST_F(ExactReplay, NamesWhatHappenedToTheFile) {
  const std::vector<std::string> lines = lines_of(recorded);
  EXPECT_EQ(
      difference(recorded.substr(0, recorded.size() - 1)),
      "truncated: the last line is incomplete. `rekernel search --resume` cuts it off and goes on");
  std::vector<std::string> edited = lines;
  edited.pop_back();
  EXPECT_EQ(difference(joined(edited)),
            "ends after line " + std::to_string(lines.size() - 1) +
                ", where the search goes on with stop: truncated, or not finished");
  edited.resize(5);
  EXPECT_EQ(difference(joined(edited)),
            "ends after line 5, where the search goes on with request "
            "r1.i2.b1: truncated, or not finished");
  edited = lines;
  std::swap(edited[7], edited[8]);
  EXPECT_EQ(difference(joined(edited)).substr(0, 63),
            "line 8: expected response r1.i1.b1, found response r1.i1.b2: th");
  edited = lines;
  edited.push_back(lines.back());
  EXPECT_EQ(
      difference(joined(edited)).substr(0, 50),
      ("line " + std::to_string(lines.size() + 1) + ": expected nothing after the stop, found stop")
          .substr(0, 50));
  edited = lines;
  edited[2] = "{\"event\":\"applause\",\"chain\":\"\"}\n";
  EXPECT_EQ(replay(joined(edited)).interruption->kind, Kind::bad_file);
  edited = lines;
  edited[0].replace(edited[0].find("\"schema\":1"), 10, "\"schema\":2");
  EXPECT_EQ(difference(joined(edited)),
            "line 1: schema 2 is newer than this program's 1; update rekernel");
  edited = lines;
  edited.erase(edited.begin());
  EXPECT_EQ(replay(joined(edited)).interruption->kind, Kind::bad_file);
}

TEST_F(ExactReplay, SurvivesTruncationAtEveryByteOfAnEvent) {
  const std::size_t size = recorded.size();
  for (std::size_t cut = 1; cut < 3000; cut += 37) {
    const Replay result = replay(recorded.substr(0, size - cut));
    EXPECT_TRUE(result.interruption);
  }
}

TEST(ExactReplaySpeed, TakesLessThanASecondForAHundredCandidates) {
  TemporaryFolder folder;
  Header header = small_header(10, 2, 5);
  FakeModel model;
  // Kernels of a realistic length.
  std::string comment;
  while (comment.size() < 15000) comment += "// a line of code, more or less, in every kernel\n";
  for (int round = 1; round <= 10; ++round) {
    for (int kernel = 0; kernel < 10; ++kernel) {
      const std::string id = "r" + std::to_string(round) + ".i" + std::to_string(kernel / 5 + 1) +
                             ".b" + std::to_string(kernel % 5 + 1);
      model.replies[id] = testing::kernel_reply(id + "\n" + comment);
    }
  }
  FakeEvaluator evaluator;
  ASSERT_FALSE(run_on_file(folder / "t.jsonl", header, model, evaluator).interruption);
  // Processor time: what else the machine does must not decide.
  const std::clock_t start = std::clock();
  const Replay replay = replay_exactly(folder / "t.jsonl");
  const double taken_s = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_FALSE(replay.interruption) << replay.interruption->message;
  EXPECT_EQ(replay.search.candidates.size(), 100u);
#ifdef NDEBUG
  constexpr double limit_s = 1.0;
#else
  constexpr double limit_s = 10.0;  // unoptimised, perhaps with sanitizers
#endif
  EXPECT_LT(taken_s, limit_s);
  RecordProperty("milliseconds", static_cast<int>(1000 * taken_s));
}

TEST(MeasuredReplay, SaysWhereTodaysTimesWouldChooseOtherwise) {
  TemporaryFolder folder;
  Header header = small_header(2, 1, 2);
  header.settings.survivors = 1;
  header.settings.references.clear();
  FakeModel model;
  for (const char* id : {"r1.i1.b1", "r1.i1.b2", "r2.i1.b1", "r2.i1.b2"}) {
    model.replies[id] = testing::kernel_reply(id);
  }
  model.replies["r2.i1.b2"] = "prose";
  class Recorder : public FakeEvaluator {
   public:
    std::map<std::string, std::int64_t> medians;
    std::optional<Interruption> evaluate(std::span<const EvaluationRequest> requests,
                                         const Arrived& arrived) override {
      for (std::size_t i = 0; i < requests.size(); ++i) {
        const Evaluation evaluation =
            testing::passing_evaluation(*requests[i].candidate, medians.at(requests[i].id));
        if (!arrived(i, recorded_evaluation(evaluation, "GPU", ""))) break;
      }
      return std::nullopt;
    }
  } evaluator;
  evaluator.medians = {{"r1.i1.b1", 600'100}, {"r1.i1.b2", 600'200}, {"r2.i1.b1", 600'300}};
  ASSERT_FALSE(run_on_file(folder / "t.jsonl", header, model, evaluator).interruption);
  const Replay replay = replay_exactly(folder / "t.jsonl", KeepCandidates::yes);
  ASSERT_FALSE(replay.interruption) << replay.interruption->message;

  Remeasurement same;
  ASSERT_FALSE(measure_again(replay.search, evaluator, {}, same));
  EXPECT_TRUE(same.changed.empty());
  EXPECT_FALSE(same.today[3]);  // the prose

  evaluator.medians = {{"r1.i1.b1", 600'250}, {"r1.i1.b2", 600'200}, {"r2.i1.b1", 600'300}};
  Remeasurement other;
  std::size_t done = 0;
  ASSERT_FALSE(measure_again(
      replay.search, evaluator, [&](std::size_t n) { done = n; }, other));
  EXPECT_EQ(done, 3u);
  ASSERT_EQ(other.changed.size(), 2u);
  EXPECT_EQ(changed_choices_text(other),
            "Round 1: recorded survivors r1.i1.b1; today's times choose r1.i1.b2.\n"
            "Round 2: recorded survivors r1.i1.b1; today's times choose r1.i1.b2.\n");
  EXPECT_NE(replay_markdown(replay.search, &other).find("| r2.i1.b2 |"), std::string::npos);
}

ReplayedSearch two_rounds() {
  ReplayedSearch search;
  search.header = small_header(2, 1, 2);
  search.header.published = PublishedRun{"a paper", 1410000, {{1, 7020000, "21.5", "port"}}};
  const auto add = [&](const std::string& id, int round, std::int64_t time) {
    ReplayedCandidate candidate;
    candidate.id = id;
    candidate.round = round;
    candidate.idea = {"idea of " + id, ""};
    candidate.outcome.status = time > 0 ? Status::passed : Status::wrong_result;
    if (time > 0) candidate.outcome.median_ns = time;
    candidate.outcome.reference = "ref";
    candidate.outcome.reference_ns = 1000000;
    search.candidates.push_back(candidate);
  };
  add("seed.1", 0, 4000000);
  add("r1.i1.b1", 1, 0);
  add("r1.i1.b2", 1, 2000000);
  add("r2.i1.b1", 2, 500000);
  add("r2.i1.b2", 2, 2500000);
  search.rounds = {{0, {}}, {1, {}}, {2, {}}};
  search.stop_reason = "rounds";
  return search;
}

TEST(ReplayReport, ShowsRoundsBesideThePublishedOnes) {
  const std::vector<RoundRow> rows = round_rows(two_rounds());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].best, "r1.i1.b2");
  EXPECT_EQ(rows[1].best_ns, 2000000);
  EXPECT_EQ(rows[1].permille_of_reference, 500);
  EXPECT_EQ(rows[1].statuses,
            (std::vector<std::pair<std::string, int>>{{"passed", 1}, {"wrong_result", 1}}));
  EXPECT_EQ(rows[2].best_so_far_ns, 500000);
  const Table table = round_table(two_rounds());
  EXPECT_EQ(table.rows[0][0], "seeds");
  EXPECT_EQ(table.rows[1],
            (std::vector<std::string>{"1", "idea of r1.i1.b2", milliseconds(2000000), "50.0%",
                                      milliseconds(2000000), milliseconds(7020000), "21.5%",
                                      "20.1%", "1 passed, 1 wrong_result",
                                      // for programs: round, candidates, passed
                                      "1", "2", "1"}));
}

TEST(ReplayReport, CountsWhatModelsWrote) {
  const SearchMetrics metrics = search_metrics(two_rounds());
  EXPECT_EQ(metrics.candidates, 4);
  EXPECT_EQ(metrics.correct, 3);
  EXPECT_EQ(metrics.best, "r2.i1.b1");
  EXPECT_EQ(metrics.best_round, 2);
  EXPECT_EQ(metrics.best_permille, 2000);
  ASSERT_EQ(metrics.pass_at.size(), 3u);
  EXPECT_DOUBLE_EQ(metrics.pass_at[0].second, 0.75);
  EXPECT_DOUBLE_EQ(metrics.pass_at[1].second, 1.0);
  // Speed-ups 0, 0.5, 2, 0.4.
  EXPECT_DOUBLE_EQ(metrics.speedup_at[0].second, 0.725);
  EXPECT_DOUBLE_EQ(metrics.speedup_at[2].second, 2.0);
  const json::object report = replay_json(two_rounds());
  EXPECT_EQ(report.at("rounds").at(1).at("published_percent"), "21.5");
}

/// A model with as many ideas as are asked for and kernels for all of them.
class Prolific : public Model {
 public:
  explicit Prolific(int ideas) {
    for (int i = 0; i < ideas; ++i) {
      ideas_ += (i > 0 ? ", " : "[") + std::string("\"Idea ") + std::to_string(i) + "\"";
    }
    ideas_ += "]";
  }
  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Arrived& arrived) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::string& id = requests[i].id;
      (void)arrived(i, {id.ends_with(".ideas") ? ideas_ : testing::kernel_reply(id)});
    }
    return std::nullopt;
  }

 private:
  std::string ideas_;
};

/// What an event costs does not grow with their number: 100,000 of them were replayed at some 900 a
/// second, and falling, when it did. A machine under load gives half of what an idle one does.
TEST(Replayer, ReadsALongTrajectoryInLittleTime) {
#if defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
  GTEST_SKIP() << "a build whose times say nothing";
#endif
  TemporaryFolder folder;
  constexpr int ideas = 8;
  const Header header = testing::small_header(102, ideas, 8);
  Prolific model(ideas);
  testing::FakeEvaluator evaluator;
  ASSERT_FALSE(testing::run_on_file(folder / "t.jsonl", header, model, evaluator).interruption);
  const std::clock_t start = std::clock();
  const Replay replay = replay_exactly(folder / "t.jsonl");
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_FALSE(replay.interruption) << replay.interruption->message;
  const auto events = static_cast<double>(replay.search.events);
  EXPECT_GT(events, 19000);
  EXPECT_GT(events / seconds, 5000);
  RecordProperty("events_per_second", std::to_string(events / seconds));
}

}  // namespace
}  // namespace rekernel

// Searches whose models answer, but with nothing that can be used.

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "replay/report/replay_report.h"
#include "replay/report/status.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/pending_journal.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace json = boost::json;
using testing::FakeEvaluator;
using testing::FakeModel;
using testing::read_text;
using testing::run_on_file;
using testing::small_header;
using testing::write_text;

constexpr const char* no_list = "the reply has neither a JSON list of ideas nor a numbered list";
constexpr const char* no_code = "the reply has no cuda block; expected exactly one";

Header header_of(int rounds, int branches = 2, std::vector<ModelSettings> models = {{"one"}}) {
  Header header = small_header(rounds, 2, branches);
  header.settings.tries = 3;
  header.settings.models = std::move(models);
  return header;
}

/// Answers requests whose id ends like this with prose.
class ProseModel : public FakeModel {
 public:
  explicit ProseModel(std::vector<std::string> endings, unsigned seed = 0)
      : FakeModel(seed), endings_(std::move(endings)) {}
  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Arrived& arrived) override {
    for (const ModelRequest& request : requests) {
      const bool prose = std::any_of(endings_.begin(), endings_.end(), [&](const auto& ending) {
        return request.id.ends_with(ending);
      });
      replies[request.id] = prose                            ? "I would rather not."
                            : request.id.ends_with(".ideas") ? testing::fake_reply(request.id).text
                                                             : testing::kernel_reply(request.id);
    }
    return FakeModel::ask(requests, arrived);
  }

 private:
  std::vector<std::string> endings_;
};

/// Prose for kernels, and nothing else.
const std::vector<std::string> kernels{".b1", ".b2", ".b3", ".b4", ".b5", ".b6", ".b7", ".b8"};

class BadReplies : public ::testing::Test {
 protected:
  SearchEnd run(const Header& header, Model& model, bool resumed = false, bool stop_asked = false) {
    FakeEvaluator evaluator;
    const SearchEnd end =
        run_on_file(path, header, model, evaluator, {}, {}, stop_asked, {}, resumed);
    EXPECT_FALSE(end.interruption) << end.interruption->message;
    return end;
  }
  std::string replayed() const {
    const Replay replay = replay_exactly(path);
    return replay.interruption ? replay.interruption->message : replay.search.stop_note;
  }

  TemporaryFolder folder;
  const std::filesystem::path path = folder / "t.jsonl";
};

TEST_F(BadReplies, EndTheSearchWhereNoIdeasCome) {
  ProseModel model({".ideas"});
  const SearchEnd end = run(header_of(5), model);
  EXPECT_EQ(end.reason, "unusable_replies");
  EXPECT_EQ(end.note,
            "round 1: asked for ideas, none of 3 replies was usable; the last, to r1.ideas "
            "of model one, which begins \"I would rather not.\": " +
                std::string(no_list));
  EXPECT_EQ(model.asked, std::vector<std::string>(3, "r1.ideas"));
  EXPECT_EQ(replayed(), end.note);
  EXPECT_EQ(run(header_of(5), model, true).note, end.note) << "those of the new run alone count";
  EXPECT_EQ(replayed(), end.note);
  const auto status = search_status(path);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_NE(status_text(*status, {}).find("state: ended early, round 1: asked for ideas"),
            std::string::npos)
      << status_text(*status, {});
}

TEST_F(BadReplies, EndTheSearchAfterARoundWithoutAKernel) {
  std::string text;
  for (const unsigned arrival : {0u, 1u, 2u}) {
    std::filesystem::remove(path);
    ProseModel model(kernels, arrival);
    const SearchEnd end = run(header_of(5), model);
    EXPECT_EQ(end.note,
              "round 1: asked for 4 kernels, none of 12 replies was usable; the last, to "
              "r1.i2.b2 of model one, which begins \"I would rather not.\": " +
                  std::string(no_code));
    EXPECT_EQ(model.asked.size(), 13u);
    EXPECT_EQ(replayed(), end.note);
    if (arrival == 0) text = read_text(path);
    EXPECT_TRUE(read_text(path) == text) << "it depends on the order of arrival";
  }
  EXPECT_EQ(text.find("\"event\":\"evaluation\""), std::string::npos);
}

TEST_F(BadReplies, EndALongRoundBeforeAllOfItIsAsked) {
  ProseModel model(kernels);
  const SearchEnd end = run(header_of(1, 8), model);
  EXPECT_EQ(end.note,
            "round 1: asked for 16 kernels, none of the first 12 replies was usable; the "
            "last, to r1.i1.b4 of model one, which begins \"I would rather not.\": " +
                std::string(no_code));
  EXPECT_EQ(model.asked.size(), 13u);
  EXPECT_EQ(replayed(), end.note);
}

TEST_F(BadReplies, DoNotEndARoundThatBroughtAUsableOne) {
  ProseModel last_is_good({".i1.b1", ".i1.b2", ".i2.b1"});
  EXPECT_EQ(run(header_of(1), last_is_good).reason, "rounds");
  EXPECT_EQ(replayed(), "");
  std::filesystem::remove(path);
  ProseModel first_is_good({kernels.begin() + 1, kernels.end()});
  EXPECT_EQ(run(header_of(1, 8), first_is_good).reason, "rounds");
  EXPECT_EQ(replayed(), "");
}

TEST_F(BadReplies, AreAskedForAgainByTheRunThatResumes) {
  ProseModel prose(kernels);
  run(header_of(2), prose);
  const std::string ended = read_text(path);
  ProseModel idle({});
  EXPECT_EQ(run(header_of(2), idle).reason, "unusable_replies") << "nobody wanted to go on";
  EXPECT_EQ(run(header_of(2), idle, true, true).reason, "unusable_replies") << "nor anything asked";
  EXPECT_TRUE(idle.asked.empty());
  EXPECT_EQ(read_text(path), ended);

  ProseModel good({});
  EXPECT_EQ(run(header_of(2), good, true).reason, "rounds");
  ASSERT_EQ(good.asked.size(), 2u * 5u);
  EXPECT_EQ(good.asked.front(), "r1.ideas");
  const std::string text = read_text(path);
  EXPECT_TRUE(text.starts_with(ended));
  const Replay replay = replay_exactly(path);
  ASSERT_FALSE(replay.interruption) << replay.interruption->message;
  EXPECT_EQ(replay.search.candidates.size(), 8u);
  // Resumed from any whole line, it ends the same.
  const std::vector<std::string> lines = testing::lines_of(text);
  for (std::size_t kept = testing::lines_of(ended).size(); kept < lines.size(); ++kept) {
    write_text(path, testing::joined({lines.begin(), lines.begin() + kept}));
    ProseModel again({});
    run(header_of(2), again, true);
    EXPECT_TRUE(read_text(path) == text) << kept << " lines kept";
  }
}

TEST_F(BadReplies, EndTheSameSearchAfterADeathAtAnyLine) {
  ProseModel model(kernels);
  run(header_of(2), model);
  const std::string text = read_text(path);
  const std::vector<std::string> lines = testing::lines_of(text);
  for (std::size_t kept = 1; kept < lines.size(); ++kept) {
    write_text(path, testing::joined({lines.begin(), lines.begin() + kept}));
    ProseModel again(kernels);
    run(header_of(2), again, true);
    EXPECT_TRUE(read_text(path) == text) << kept << " lines kept";
  }
}

/// A run that died between the stop and its end has left its journal.
TEST_F(BadReplies, ThatWereKeptAreNotTakenForNewOnes) {
  ProseModel prose({".ideas"});
  run(header_of(1), prose);
  json::object request, response;
  for (const std::string& line : testing::lines_of(read_text(path))) {
    const json::object event = json::parse(line).as_object();
    if (event_title(event) == "request r1.ideas") request = event;
    if (event_title(event) == "response r1.ideas") response = event;
  }
  response["prompt_sha256"] = request.at("prompt_sha256");
  auto journal = PendingJournal::open(path);
  ASSERT_TRUE(journal && journal->add(response));
  ProseModel good({});
  EXPECT_EQ(run(header_of(1), good, true).reason, "rounds");
  EXPECT_EQ(good.asked.size(), 5u);
}

TEST_F(BadReplies, EndTheSearchOnceEveryModelHadItsTurn) {
  const std::vector<ModelSettings> two{{"one"}, {"two"}};
  ProseModel first({"r1.ideas"});
  EXPECT_EQ(run(header_of(2, 2, two), first).reason, "rounds");
  std::filesystem::remove(path);
  ProseModel both({".ideas"});
  const SearchEnd end = run(header_of(5, 2, two), both);
  EXPECT_EQ(end.note,
            "round 2: asked for ideas, none of 6 replies was usable; the last, to r2.ideas "
            "of model two, which begins \"I would rather not.\": " +
                std::string(no_list));
  EXPECT_EQ(both.asked.size(), 6u);
  EXPECT_EQ(replayed(), end.note);
}

/// What costs nothing is taken as it is.
class FreeProseModel : public ProseModel {
 public:
  using ProseModel::ProseModel;
  bool keeps_replies() const override { return true; }
};

TEST_F(BadReplies, EndNoSearchThatIsRecordedOtherwise) {
  Header header = header_of(2);
  header.settings.tries = 1;
  FreeProseModel model(kernels);
  EXPECT_EQ(run(header, model).reason, "rounds");
  EXPECT_EQ(replayed(), "");
}

TEST_F(BadReplies, AreNoReasonWhereOneWasUsable) {
  ProseModel model({".i1.b1", ".i1.b2", ".i2.b1"});
  run(header_of(1), model);
  const std::string text = read_text(path);
  std::string lines;
  for (const std::string& line : testing::lines_of(text)) {
    if (line.starts_with("{\"event\":\"evaluation\"")) break;
    lines += line;
  }
  lines += json::serialize(json::object{{"event", "stop"},
                                        {"reason", "unusable_replies"},
                                        {"note", "round 1: nothing"},
                                        {"prompt_tokens", 0},
                                        {"completion_tokens", 0}}) +
           "\n";
  write_text(path, testing::with_fresh_chain(lines));
  EXPECT_NE(replayed().find("expected evaluation r1.i1.b1"), std::string::npos) << replayed();
}

}  // namespace
}  // namespace rekernel

// `rekernel search` as its user meets it, with an endpoint of the test's own.

#include <gtest/gtest.h>
#include <signal.h>
#include <boost/json.hpp>

#include <filesystem>

#include "harness/gpu/choice.h"
#include "program.h"
#include "tests/replay/fakes.h"
#include "tests/replay/model/http_server.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using testing::completion;
using testing::HttpAnswer;
using testing::HttpRequest;
using testing::HttpServer;
using testing::ProgramOutcome;
using testing::read_text;

constexpr const char* key = "sk-secret-0123456789";

/// A project of its own, and a configuration without endpoints.
class SearchCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"generated", "results"}) fs::create_directories(folder_ / name);
  }
  ProgramOutcome search(const std::string& arguments, const std::string& variables = "") const {
    return testing::run_program(
        "search --without-gpu " + arguments, folder_.path().string(),
        "XDG_CONFIG_HOME=" + (folder_ / "config").string() + " " + variables);
  }
  void expect_bad(const std::string& arguments, const std::string& part) const {
    const ProgramOutcome outcome = search(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << arguments << "\n" << outcome.output;
    EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1) << outcome.output;
  }
  fs::path trajectory(const std::string& name) const {
    return folder_ / "trajectories" / (name + ".jsonl");
  }

  TemporaryFolder folder_;
};

TEST_F(SearchCommand, NamesWhatIsNotThereBeforeAnythingIsPaid) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("")};
  });
  const std::string openai =
      " --replies openai --model one --base-url " + server.url() + " --problem ";
  expect_bad("s" + openai + "sofmax", "unknown problem 'sofmax'");
  expect_bad("s" + openai + "softmax --reference cudnn_fp32",
             "unknown reference 'cudnn_fp32' of softmax: expected cudnn_softmax");
  expect_bad("s" + openai + "softmax --target b200",
             "--target b200 (did you mean 'h200'?): expected h200 or l40s");
  expect_bad("s" + openai + "softmax --rounds 4294967297", "settings.rounds: expected");
  expect_bad("s --replies openai --problem softmax", "expected --model NAME");
  expect_bad("s --problem softmax --base-url " + server.url(), "expected --replies openai with it");
  EXPECT_TRUE(server.requests().empty());
  EXPECT_FALSE(fs::exists(trajectory("s")));
}

TEST_F(SearchCommand, DoesNotFollowATrajectoryFromElsewhere) {
  HttpServer server([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("")};
  });
  Header header = testing::small_header(1);
  header.settings.models = {{"one", server.url(), "AWS_SECRET_ACCESS_KEY"}};
  testing::FakeModel model;
  testing::FakeEvaluator evaluator;
  testing::run_on_file(trajectory("fake"), header, model, evaluator, {}, [] { return true; });
  const std::string before = read_text(trajectory("fake"));
  testing::write_text(folder_ / "more.json", R"({"rounds": 2})");
  for (const char* arguments :
       {"fake --resume --replies openai", "fake --continue more.json --replies openai"}) {
    const ProgramOutcome outcome =
        search(arguments, std::string("AWS_SECRET_ACCESS_KEY=") + key + " OPENAI_API_KEY=" + key);
    EXPECT_EQ(outcome.exit_status, 2);
    EXPECT_NE(outcome.output.find("which is not taken from a trajectory"), std::string::npos)
        << outcome.output;
  }
  EXPECT_TRUE(server.requests().empty());
  EXPECT_EQ(read_text(trajectory("fake")), before);
}

TEST_F(SearchCommand, RefusesOptionsThatResumingWouldIgnore) {
  testing::recorded_search(trajectory("fake"), testing::small_header(1));
  expect_bad("fake --resume --rounds 4", "--continue FILE changes it after a stop");
  expect_bad("fake --resume --model other", "--ask-as NAME");
  expect_bad("fake --resume --problem softmax", "--problem: expected no such option with --resume");
  EXPECT_EQ(search("fake --resume --deadline 5").exit_status, 0);
  EXPECT_EQ(search("waits --problem softmax").exit_status, 3);
  expect_bad("waits --continue none.json", "none.json: cannot be opened");
  expect_bad("none --resume", "nothing to resume");
}

/// Ideas, then kernels without code: a search that needs no GPU.
HttpAnswer prose(const HttpRequest& request) {
  const bool ideas = request.body.find("Propose 2 ideas") != std::string::npos;
  return {"200 OK", "", completion(ideas ? "[\"Wider loads\", \"Fewer passes\"]" : "no code")};
}

TEST_F(SearchCommand, EndsWithAnErrorWhereItGotNothing) {
  HttpServer server([](int, const HttpRequest& request) { return prose(request); });
  const ProgramOutcome outcome = search(
      "s --problem softmax --rounds 1 --branches 1 --tries 1 --replies openai --model one "
      "--base-url " +
      server.url());
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_NE(outcome.output.find("the search is over (rounds) and got nothing: none of 2 replies "
                                "held a kernel; r1.i2.b1: the reply has no cuda block"),
            std::string::npos)
      << outcome.output;
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST_F(SearchCommand, EndsWithTheFirstRoundThatBringsNothingAndRepeatsIt) {
  HttpServer useless([](int, const HttpRequest& request) { return prose(request); });
  const ProgramOutcome first = search(
      "s --problem softmax --branches 1 --replies openai --model one --base-url " + useless.url());
  EXPECT_EQ(first.exit_status, 1);
  EXPECT_NE(first.output.find("r1.i1.b1: the reply has no cuda block; expected exactly one; "
                              "asking again (3 of 3)"),
            std::string::npos)
      << first.output;
  EXPECT_NE(first.output.find("rekernel: the search ended early: round 1: asked for 2 kernels, "
                              "none of 6 replies was usable; the last, to r1.i2.b1 of model one, "
                              "which begins \"no code\": the reply has no cuda block; expected "
                              "exactly one\nrekernel search s --resume --replies openai "),
            std::string::npos)
      << first.output;
  EXPECT_EQ(useless.requests().size(), 1u + 6u);
  const std::string ended = read_text(trajectory("s"));
  EXPECT_FALSE(replay_exactly(trajectory("s")).interruption);

  HttpServer thinks([](int, const HttpRequest&) {
    return HttpAnswer{"200 OK", "", completion("<think>\nThe user wants")};
  });
  const ProgramOutcome second =
      search("s --resume --replies openai --ask-as two --base-url " + thinks.url());
  EXPECT_EQ(second.exit_status, 1);
  EXPECT_NE(second.output.find(
                "round 1: asked for ideas, none of 3 replies was usable; the last, to r1.ideas of "
                "model one: the model gave no text after its thoughts\n"),
            std::string::npos)
      << second.output;
  EXPECT_TRUE(read_text(trajectory("s")).starts_with(ended));
  const ProgramOutcome status = search("s --status");
  EXPECT_NE(status.output.find("state: ended early, round 1: asked for ideas"), std::string::npos)
      << status.output;
  EXPECT_NE(status.output.find("\nround 1, planned up to 5; "), std::string::npos) << status.output;
  const ProgramOutcome taken =
      search("s --resume --as-is --replies openai --base-url " + useless.url());
  EXPECT_EQ(taken.exit_status, 1);
  EXPECT_NE(taken.output.find("the search is over (rounds) and got nothing: none of 10 replies"),
            std::string::npos)
      << taken.output;
  const Replay replay = replay_exactly(trajectory("s"));
  EXPECT_FALSE(replay.interruption) << replay.interruption->message;
}

TEST_F(SearchCommand, BelievesTheAuthoritiesOfItsFile) {
  const testing::Authority authority, another;
  HttpServer server([](int, const HttpRequest& request) { return prose(request); },
                    authority.certify("127.0.0.1"));
  HttpServer misnamed([](int, const HttpRequest& request) { return prose(request); },
                      authority.certify("127.0.0.2"));
  testing::write_text(folder_ / "ours.pem", authority.pem());
  testing::write_text(folder_ / "another.pem", another.pem());
  testing::write_text(folder_ / "none.pem", "a note\n");
  testing::write_text(folder_ / "broken.pem",
                      "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n");
  const auto options = [](const HttpServer& asked) {
    return " --problem softmax --rounds 1 --branches 1 --tries 1 --replies openai --model one "
           "--key-variable MY_KEY --base-url " +
           asked.url();
  };
  const std::string variables = std::string("MY_KEY=") + key;
  const auto expect_disbelief = [&](const std::string& arguments, const std::string& part) {
    const ProgramOutcome outcome = search(arguments, variables);
    EXPECT_EQ(outcome.exit_status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << outcome.output;
  };
  expect_disbelief(
      "s" + options(server),
      "its certificate is not trusted: SSL certificate problem: unable to get local issuer "
      "certificate (--ca-file names the authorities to trust)");
  expect_disbelief("a --ca-file another.pem" + options(server), "its certificate is not trusted: ");
  expect_disbelief("n --ca-file none.pem" + options(server),
                   "none.pem: expected certificates (-----BEGIN CERTIFICATE-----)");
  expect_disbelief("b --ca-file broken.pem" + options(server),
                   "broken.pem: expected certificates (-----BEGIN CERTIFICATE-----)");
  expect_disbelief("m --ca-file ours.pem" + options(misnamed), "match");
  EXPECT_TRUE(server.requests().empty());
  EXPECT_TRUE(misnamed.requests().empty());
  EXPECT_FALSE(fs::exists(trajectory("n")));

  const ProgramOutcome asked =
      search("s --resume --replies openai --key-variable MY_KEY --ca-file ours.pem --base-url " +
                 server.url(),
             variables);
  EXPECT_EQ(asked.exit_status, 1) << asked.output;
  EXPECT_NE(asked.output.find("got nothing: none of 2 replies held a kernel"), std::string::npos)
      << asked.output;
  EXPECT_EQ(server.requests().size(), 3u);
  EXPECT_NE(server.requests().at(0).head.find(std::string("Authorization: Bearer ") + key),
            std::string::npos);
  EXPECT_NE(read_text(trajectory("s")).find("\"ca_sha256\":\""), std::string::npos);
}

TEST_F(SearchCommand, TellsWhereItStands) {
  const ProgramOutcome first = search("s --problem softmax --rounds 1");
  EXPECT_EQ(first.exit_status, 3) << first.output;
  const ProgramOutcome status = search("s --status");
  EXPECT_EQ(status.exit_status, 0);
  EXPECT_NE(status.output.find("state: waits for 1 reply\n"), std::string::npos) << status.output;
  EXPECT_NE(status.output.find("s.exchange/r1.ideas.reply.md"), std::string::npos) << status.output;
  const ProgramOutcome json = search("s --status --json");
  EXPECT_EQ(boost::json::parse(json.output).at("awaited_replies").at(0), "r1.ideas");
  expect_bad("none --status", "no such search");
  const ProgramOutcome walk = testing::run_program("replay s --walk", folder_.path().string());
  EXPECT_EQ(walk.exit_status, 0) << walk.output;
  EXPECT_EQ(testing::run_program("replay s", folder_.path().string()).exit_status, 1);
}

TEST_F(SearchCommand, MovesToAnotherEndpointAndRecordsThat) {
  HttpServer broken([](int, const HttpRequest&) {
    return HttpAnswer{"400 Bad", "", "no such model"};
  });
  HttpServer good([](int, const HttpRequest& request) { return prose(request); });
  const std::string variables = std::string("MY_KEY=") + key;
  const ProgramOutcome first = search(
      "s --problem softmax --rounds 1 --branches 1 --tries 1 --replies openai "
      "--model one --key-variable MY_KEY --base-url " +
          broken.url(),
      variables);
  EXPECT_EQ(first.exit_status, 2);
  EXPECT_NE(first.output.find("no such model; the same command goes on"), std::string::npos)
      << first.output;
  expect_bad(
      "s --problem softmax --rounds 1 --branches 1 --tries 1 --replies openai --model one "
      "--key-variable MY_KEY --base-url " +
          good.url(),
      "differs in settings.models; --resume goes on with its recorded settings, also with "
      "another --base-url or --ask-as");
  const ProgramOutcome by_files = search("s --resume");
  EXPECT_EQ(by_files.exit_status, 3);
  EXPECT_NE(
      by_files.output.find("its replies came from an endpoint so far; without --replies openai, "
                           "the rest is asked for by files\n"),
      std::string::npos)
      << by_files.output;
  const ProgramOutcome second = search(
      "s --resume --replies openai --key-variable MY_KEY --ask-as two --base-url " + good.url(),
      variables);
  EXPECT_NE(second.output.find(good.url() + ", asked as two"), std::string::npos) << second.output;
  const std::string text = read_text(trajectory("s"));
  EXPECT_NE(text.find("{\"event\":\"endpoints\",\"models\":[{\"name\":\"one\",\"base_url\":\"" +
                      good.url() + "\",\"key_variable\":\"MY_KEY\",\"ask_as\":\"two\"}]"),
            std::string::npos);
  EXPECT_EQ(text.find(key), std::string::npos);
  EXPECT_EQ(boost::json::parse(good.requests().at(0).body).at("model"), "two");
  const Replay replay = replay_exactly(trajectory("s"));
  EXPECT_FALSE(replay.interruption) << replay.interruption->message;
  // With nothing left to ask, nothing more is recorded.
  search(
      "s --resume --replies openai --key-variable MY_KEY --ask-as three --base-url " + good.url(),
      variables);
  EXPECT_EQ(read_text(trajectory("s")), text);
}

TEST_F(SearchCommand, TakesAHeaderBackOnTheCommandLine) {
  HttpServer server([](int, const HttpRequest& request) {
    return request.head.find("X-A: b") == std::string::npos ? prose(request)
                                                            : HttpAnswer{"400 Bad", "", "X-A"};
  });
  const std::string asked = " --replies openai --base-url " + server.url();
  EXPECT_EQ(search("s --problem softmax --rounds 1 --branches 1 --tries 1 --model one --header "
                   "'X-A: b'" +
                   asked)
                .exit_status,
            2);
  expect_bad("s --resume" + asked, "the headers \"X-A\", which is not taken from a trajectory");
  expect_bad("s --resume --header X-A" + asked, "expected \"NAME: VALUE\", or '' alone for none");
  EXPECT_EQ(search("s --resume --header ''" + asked).exit_status, 1);
}

TEST_F(SearchCommand, RefusesSettingsThatDescribeOtherReplies) {
  testing::write_text(folder_ / "s.json", R"({"problem": "softmax", "replies": "openai"})");
  expect_bad("s --settings s.json", "--replies openai asks so; expected both to be the same");
  testing::write_text(folder_ / "s.json", R"({"problem": "softmax", "replies": "by hand"})");
  EXPECT_EQ(search("s --settings s.json").exit_status, 3);
}

TEST_F(SearchCommand, AnInterruptionSaysTheCommandThatGoesOn) {
  const std::string pid_file = (folder_ / "pid").string();
  HttpServer server([&](int, const HttpRequest&) {
    ::kill(std::stoi(read_text(pid_file)), SIGINT);
    return HttpAnswer{.delay_ms = 500};
  });
  const ProgramOutcome outcome = testing::run_shell(
      "XDG_CONFIG_HOME=config OTHER=1 sh -c 'echo $$ >pid; exec \"$0\" \"$@\"' \"" REKERNEL_PROGRAM
      "\" search s --without-gpu --problem softmax --rounds 1 --branches 1 --replies openai "
      "--model one --header 'X-Key: secret' --header 'X-Other: $OTHER' --json --deadline 5 "
      "--base-url " +
          server.url(),
      folder_.path().string());
  std::string said = outcome.output;
  for (std::size_t at; (at = said.find("\n  ")) != std::string::npos;) said.replace(at, 3, " ");
  EXPECT_NE(said.find("interrupted; this goes on with it: rekernel search s --resume --without-gpu "
                      "--replies openai --header '…' --header 'X-Other: $OTHER' --json --deadline "
                      "5 --base-url " +
                      server.url()),
            std::string::npos)
      << said;
}

TEST_F(SearchCommand, AsksForGpusOfDifferentKindsWhenItBegins) {
  EXPECT_EQ(search("both --problem softmax --mixed-gpus").exit_status, 3);
  EXPECT_NE(read_text(trajectory("both")).find("\"mixed_gpus\":true"), std::string::npos);
  EXPECT_EQ(search("both --resume").exit_status, 3);
  EXPECT_EQ(search("both --resume --mixed-gpus").exit_status, 3);
  EXPECT_EQ(search("one --problem softmax").exit_status, 3);
  EXPECT_EQ(read_text(trajectory("one")).find("mixed_gpus"), std::string::npos);
  expect_bad("one --resume --mixed-gpus", "--mixed-gpus: the search began without it");

  Header header = testing::small_header(1);
  header.settings.mixed_gpus = true;
  testing::FakeModel model;
  for (const char* id : {"r1.i1.b1", "r1.i1.b2", "r1.i2.b1", "r1.i2.b2"}) {
    model.replies[id] = testing::kernel_reply(id);
  }
  testing::FakeEvaluator evaluator;
  evaluator.gpu_of = [](const std::string& id) {
    return id.starts_with("r1.i2") ? testing::FakeGpu{"NVIDIA H100", 2000000} : testing::FakeGpu{};
  };
  testing::run_on_file(trajectory("fake"), header, model, evaluator);
  const auto replayed = [&](const std::string& options) {
    return testing::run_program("replay fake " + options, folder_.path().string());
  };
  const ProgramOutcome walk = replayed("--walk");
  EXPECT_EQ(walk.exit_status, 0) << walk.output;
  EXPECT_NE(walk.output.find("on NVIDIA H100"), std::string::npos) << walk.output;
  EXPECT_NE(walk.output.find("on NVIDIA H200"), std::string::npos) << walk.output;
  EXPECT_EQ(replayed("--table").exit_status, 0);
  EXPECT_EQ(search("fake --status").exit_status, 0);
}

TEST_F(SearchCommand, PaysForNothingThatNobodyCanJudge) {
  if (visible_gpus()) GTEST_SKIP() << "this machine has a GPU";
  HttpServer server([](int, const HttpRequest& request) { return prose(request); });
  const ProgramOutcome outcome = testing::run_program(
      "search s --problem softmax --rounds 1 --tries 1 --replies openai --model one --base-url " +
          server.url(),
      folder_.path().string(), "XDG_CONFIG_HOME=" + (folder_ / "config").string());
  EXPECT_EQ(outcome.exit_status, 3) << outcome.output;
  EXPECT_NE(outcome.output.find("nothing is asked for, since nothing here can judge"),
            std::string::npos)
      << outcome.output;
  EXPECT_TRUE(server.requests().empty());
  EXPECT_FALSE(fs::exists(trajectory("s")));
}

TEST_F(SearchCommand, AnUnfinishedSearchOfOnesOwnIsNobodysConcern) {
  const auto shell = [&](const std::string& commands) {
    return testing::run_shell(commands, folder_.path().string());
  };
  ASSERT_EQ(shell("git init -q -b main . && git config user.name S && "
                  "git config user.email s@example.org")
                .exit_status,
            0);
  EXPECT_EQ(search("mine --problem softmax --rounds 1").exit_status, 3);
  const ProgramOutcome added = shell("git add -A && git status --porcelain");
  EXPECT_EQ(added.output, "") << "git takes it along";
  Header header = testing::small_header(1);
  testing::FakeModel model;
  for (const char* id : {"r1.i1.b1", "r1.i1.b2", "r1.i2.b1", "r1.i2.b2"}) {
    model.replies[id] = testing::kernel_reply(id);
  }
  testing::FakeEvaluator evaluator;
  testing::run_on_file(trajectory("done"), header, model, evaluator);
  const ProgramOutcome all = testing::run_program("replay --table", folder_.path().string());
  EXPECT_EQ(all.exit_status, 0) << all.output;
  EXPECT_NE(all.output.find("trajectories/mine.jsonl: unfinished and not committed, left out"),
            std::string::npos)
      << all.output;
  // Committed, it has to replay.
  shell("git add -f trajectories/mine.jsonl && git commit -q -m mine");
  EXPECT_NE(testing::run_program("replay --table", folder_.path().string()).exit_status, 0);
  // Ended, a search is seen by git again.
  shell("git rm -q --cached trajectories/mine.jsonl && git commit -q -m gone");
  HttpServer server([](int, const HttpRequest& request) { return prose(request); });
  EXPECT_EQ(search("ended --problem softmax --rounds 1 --branches 1 --tries 1 --replies openai "
                   "--model one --base-url " +
                   server.url())
                .exit_status,
            1);
  EXPECT_TRUE(read_text(folder_ / "trajectories/.gitignore").ends_with("/.gitignore\n/mine.*\n"));
  EXPECT_EQ(shell("git add -A && git status --porcelain").output,
            "A  trajectories/done.jsonl\nA  trajectories/ended.jsonl\n");
}

}  // namespace
}  // namespace rekernel

#include "replay/model/files_model.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using testing::fake_reply;
using testing::FakeEvaluator;
using testing::read_text;
using testing::run_on_file;
using testing::small_header;
using testing::write_text;

std::vector<std::string> waiting_ids(const std::filesystem::path& folder) {
  std::vector<std::string> ids;
  constexpr std::string_view ending = ".prompt.md";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    if (!name.ends_with(ending)) continue;
    const std::string id = name.substr(0, name.size() - ending.size());
    if (!std::filesystem::exists(folder / (id + ".reply.md"))) ids.push_back(id);
  }
  return ids;
}

TEST(FilesModel, CarriesASearchThroughAFolder) {
  TemporaryFolder folder;
  const std::filesystem::path exchange = folder / "exchange";
  FilesModel model(exchange);
  FakeEvaluator evaluator;
  SearchEnd end;
  std::vector<std::size_t> waits;
  while ((end = run_on_file(folder / "t.jsonl", small_header(2), model, evaluator)).interruption) {
    ASSERT_EQ(end.interruption->kind, Interruption::Kind::waiting) << end.interruption->message;
    const std::vector<std::string> ids = waiting_ids(exchange);
    ASSERT_FALSE(ids.empty());
    waits.push_back(ids.size());
    for (const std::string& id : ids)
      write_text(exchange / (id + ".reply.md"), fake_reply(id).text);
  }
  // All kernels of a round are asked for at once.
  EXPECT_EQ(waits, (std::vector<std::size_t>{1, 4, 1, 4}));
  const Replay replay = replay_exactly(folder / "t.jsonl");
  EXPECT_FALSE(replay.interruption) << replay.interruption->message;
  EXPECT_EQ(read_text(exchange / "r1.ideas.prompt.md").substr(0, 8), "You plan");
}

TEST(FilesModel, TakesRepliesInWhateverOrderTheyCome) {
  TemporaryFolder folder;
  const std::filesystem::path exchange = folder / "exchange";
  std::filesystem::create_directory(exchange);
  FilesModel model(exchange);
  FakeEvaluator evaluator;
  // The last reply is there first.
  for (const char* id : {"r1.ideas", "r1.i2.b2"}) {
    write_text(exchange / (std::string(id) + ".reply.md"), fake_reply(id).text);
  }
  const SearchEnd end = run_on_file(folder / "t.jsonl", small_header(1), model, evaluator);
  ASSERT_TRUE(end.interruption);
  EXPECT_EQ(end.interruption->message.substr(0, 21), "waiting for 3 replies");
  EXPECT_NE(end.interruption->message.find("r1.i1.b2.prompt.md → r1.i1.b2.reply.md"),
            std::string::npos)
      << end.interruption->message;
  EXPECT_EQ(end.interruption->message.find("r1.i2.b2"), std::string::npos);
  EXPECT_TRUE(evaluator.evaluated.empty());
}

TEST(FilesModel, RefusesAFolderOfAnotherSearch) {
  TemporaryFolder folder;
  write_text(folder / "r1.ideas.prompt.md", "Something else.");
  FilesModel model(folder.path());
  FakeEvaluator evaluator;
  const SearchEnd end = run_on_file(folder / "t.jsonl", small_header(1), model, evaluator);
  ASSERT_TRUE(end.interruption);
  EXPECT_EQ(end.interruption->kind, Interruption::Kind::failed);
  EXPECT_NE(end.interruption->message.find("holds another prompt"), std::string::npos);
  EXPECT_EQ(read_text(folder / "r1.ideas.prompt.md"), "Something else.");
}

TEST(FilesModel, RecordsAReplyThatIsTooLong) {
  TemporaryFolder folder;
  write_text(folder / "a.reply.md", std::string(max_reply_bytes + 1, 'x'));
  FilesModel model(folder.path());
  const std::vector<ModelRequest> requests{{"a", "m", "prompt"}};
  ModelReply got;
  EXPECT_FALSE(model.ask(requests, [&](std::size_t, ModelReply reply) {
    got = std::move(reply);
    return Reception{};
  }));
  EXPECT_EQ(got.failure, "the reply has 4194305 bytes; at most 4194304 are recorded");
}

TEST(FilesModel, ReportsAnUnusableReplyAndWaitsForABetterOne) {
  TemporaryFolder folder;
  Header header = small_header(1, 2, 1);
  header.settings.tries = 3;
  write_text(folder / "r1.ideas.reply.md", fake_reply("r1.ideas").text);
  write_text(folder / "r1.i1.b1.reply.md", "Sorry, I cannot help with that.");
  write_text(folder / "r1.i2.b1.reply.txt", testing::kernel_reply("misnamed"));
  write_text(folder / "R1.i9.b1.reply.md", "nobody asked");
  FilesModel model(folder.path());
  FakeEvaluator evaluator;
  const auto path = folder / "t.jsonl";
  const SearchEnd end = run_on_file(path, header, model, evaluator);
  ASSERT_TRUE(end.interruption);
  EXPECT_EQ(end.interruption->kind, Interruption::Kind::waiting);
  const std::string& message = end.interruption->message;
  EXPECT_TRUE(message.starts_with("waiting for 2 replies in " + folder.path().string())) << message;
  EXPECT_NE(message.find("\n  r1.i2.b1.prompt.md → r1.i2.b1.reply.md\n"), std::string::npos);
  EXPECT_NE(
      message.find("\n  r1.i1.b1.reply.md: the reply has no cuda block; expected exactly one; "
                   "write a better one over it"),
      std::string::npos)
      << message;
  EXPECT_NE(message.find("\n  r1.i2.b1.reply.txt: no prompt has a reply of this name; expected "
                         "r1.i2.b1.reply.md"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("\n  R1.i9.b1.reply.md: no prompt has a reply of this name"),
            std::string::npos);
  const std::string before = read_text(path);
  EXPECT_EQ(before.find("unusable"), std::string::npos) << "nothing is recorded of it";
  EXPECT_EQ(before.find("response r1.i1"), std::string::npos);

  write_text(folder / "r1.i1.b1.reply.md", testing::kernel_reply("better"));
  write_text(folder / "r1.i2.b1.reply.md", testing::kernel_reply("here"));
  const SearchEnd better = run_on_file(path, header, model, evaluator);
  ASSERT_FALSE(better.interruption) << better.interruption->message;
  EXPECT_EQ(evaluator.evaluated.size(), 2u);
  EXPECT_FALSE(replay_exactly(path).interruption);
}

}  // namespace
}  // namespace rekernel

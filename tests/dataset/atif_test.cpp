#include "harness/dataset/atif.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "replay/playback/replayer.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace json = boost::json;

TEST(Atif, HasAStepForEachPromptReplyAndSelection) {
  TemporaryFolder folder;
  testing::FakeModel model;
  for (const char* id : {"r1.i1.b1", "r2.i1.b1"}) model.replies[id] = testing::kernel_reply(id);
  testing::FakeEvaluator evaluator;
  evaluator.gpu_of = [](const std::string&) { return testing::FakeGpu(); };
  for (const char* id : {"r1.i1.b1", "r2.i1.b1"}) evaluator.times[id] = 600000;
  testing::run_on_file(folder / "t.jsonl", testing::small_header(2, 1, 1), model, evaluator);
  std::string text;
  const Result<std::size_t> steps = write_atif(folder / "t.jsonl", [&](std::string_view part) {
    text += part;
    return true;
  });
  ASSERT_TRUE(steps) << steps.error().message;
  const json::object document = json::parse(text).as_object();
  EXPECT_EQ(document.at("schema_version"), "ATIF-v1.7");
  const json::array& all = document.at("steps").as_array();
  ASSERT_EQ(all.size(), *steps);
  // Each round: ideas asked and given, a kernel asked and given, the selection.
  ASSERT_EQ(all.size(), 10u);
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].at("step_id").to_number<std::size_t>(), i + 1);
    const json::object& step = all[i].as_object();
    EXPECT_EQ(step.contains("metrics"), step.at("source") == "agent");
    if (step.contains("metrics")) {
      tokens += step.at("metrics").at("completion_tokens").as_int64();
    }
  }
  EXPECT_EQ(document.at("final_metrics").at("total_completion_tokens"), tokens);
  EXPECT_EQ(all[2].at("message"), json::value(model.prompts.at("r1.i1.b1")));
  EXPECT_TRUE(std::string(all[3].at("observation").at("results").at(0).at("content").as_string())
                  .starts_with("passed"));
}

TEST(Atif, SaysThatItCannotBeWritten) {
  TemporaryFolder folder;
  testing::FakeModel model;
  model.replies["r1.i1.b1"] = testing::kernel_reply("good");
  testing::FakeEvaluator evaluator;
  evaluator.gpu_of = [](const std::string&) { return testing::FakeGpu(); };
  testing::run_on_file(folder / "t.jsonl", testing::small_header(1, 1, 1), model, evaluator);
  EXPECT_FALSE(write_atif(folder / "t.jsonl", [](std::string_view) { return false; }));
  EXPECT_FALSE(write_atif(folder / "none.jsonl", [](std::string_view) { return true; }));
}

}  // namespace
}  // namespace rekernel

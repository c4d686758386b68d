#include "harness/dataset/judged_again.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace json = boost::json;

JudgedAgain row(const std::string& id, const std::string& now, std::int64_t ns,
                std::int64_t ns_now) {
  return {id, "sha", "H", "passed", ns, "H", now, ns_now, "judge", "2026-02-03"};
}

TEST(JudgedAgain, IsKeptLineByLineAndGoesOnAfterAKill) {
  TemporaryFolder folder;
  const auto path = folder / "results/h/judged_again.jsonl";
  EXPECT_FALSE(*load_judged_again(path));
  const Draw draw{2, 7, "digest"};
  ASSERT_TRUE(append_draw(path, draw));
  ASSERT_TRUE(append_judged_again(path, row("a", "passed", 1000, 1010)));
  testing::write_text(path, testing::read_text(path) + "{\"id\": \"b\", \"sha");
  const auto record = load_judged_again(path);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->draw, draw);
  ASSERT_EQ((*record)->rows.size(), 1u);
  ASSERT_TRUE(append_judged_again(path, row("b", "wrong_result", 1000, 0)));
  EXPECT_EQ((*load_judged_again(path))->rows.size(), 2u);

  const auto summaries = judged_again_summaries(folder.path());
  ASSERT_TRUE(summaries);
  ASSERT_EQ(summaries->size(), 1u);
  const json::object& summary = (*summaries)[0].as_object();
  EXPECT_EQ(summary.at("judged"), 2u);
  EXPECT_EQ(summary.at("same_status"), 1);
  EXPECT_EQ(summary.at("timed_on_the_same_device"), 1u);
  EXPECT_EQ(summary.at("median_difference_permille"), 10.0);
  EXPECT_EQ(summary.at("changed").as_array().size(), 1u);
}

TEST(JudgedAgain, RefusesWhatIsNoRecord) {
  TemporaryFolder folder;
  testing::write_text(folder / "r.jsonl", "{\"schema\": 1}\n");
  const auto record = load_judged_again(folder / "r.jsonl");
  ASSERT_FALSE(record);
  EXPECT_NE(record.error().message.find("line 1"), std::string::npos);
}

TEST(Drawn, HasNoneTwiceAndIsTheSameForASeed) {
  const auto some = drawn(1000, 200, 1);
  EXPECT_EQ(std::set<std::size_t>(some.begin(), some.end()).size(), 200u);
  EXPECT_EQ(some, drawn(1000, 200, 1));
  EXPECT_NE(some, drawn(1000, 200, 2));
  EXPECT_EQ(drawn(3, 200, 1).size(), 3u);
  EXPECT_TRUE(drawn(0, 5, 1).empty());
}

}  // namespace
}  // namespace rekernel

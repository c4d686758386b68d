#include "replay/trajectory/inspection.h"

#include <gtest/gtest.h>

#include "replay/trajectory/trajectory.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using testing::write_text;

const std::string first_line = R"({"event":"header","schema":1})"
                               "\n";

std::string endpoints_line(const std::string& url) {
  return R"({"event":"endpoints","models":[{"name":"one","base_url":")" + url + R"("}]})" + "\n";
}

TEST(LastEndpoints, AreTheHeadersUntilTheyChange) {
  const TemporaryFolder folder;
  const auto address = [&](const std::string& text) {
    write_text(folder / "t.jsonl", text);
    const auto models = last_endpoints(folder / "t.jsonl", {{"one", "https://header/v1"}});
    return models ? models->at(0).base_url : "error: " + models.error().message;
  };
  EXPECT_EQ(address(first_line), "https://header/v1");
  const std::string changed =
      first_line + endpoints_line("https://a/v1") + endpoints_line("https://b/v1");
  EXPECT_EQ(address(changed), "https://b/v1");
  std::string torn = endpoints_line("https://c/v1");
  torn.pop_back();
  EXPECT_EQ(address(changed + torn), "https://b/v1") << "a line without its end is not there yet";
}

TEST(LastEndpoints, AreOfTheSearchsModels) {
  const TemporaryFolder folder;
  write_text(folder / "t.jsonl", first_line + endpoints_line("https://a/v1"));
  const auto models = last_endpoints(folder / "t.jsonl", {{"two", "https://header/v1"}});
  ASSERT_FALSE(models);
  EXPECT_NE(models.error().message.find("expected the models of the search"), std::string::npos)
      << models.error().message;
  EXPECT_FALSE(last_endpoints(folder / "nothing.jsonl", {}));
}

TEST(TimedOn, IsTheGpuOfTheFirstEvaluationThatHasOne) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.jsonl";
  write_text(path, first_line);
  EXPECT_EQ(*timed_on(path), "");
  write_text(path, first_line + R"({"event":"evaluation","id":"r1.i1.b1","status":"invalid_plan"}
{"event":"evaluation","id":"r1.i1.b2","device":"NVIDIA H200"}
{"event":"evaluation","id":"r1.i1.b3","device":"NVIDIA L40S"}
)");
  EXPECT_EQ(*timed_on(path), "NVIDIA H200");
}

TEST(BeingWritten, IsWhatASearchHolds) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.jsonl";
  EXPECT_FALSE(is_being_written(path));
  {
    const auto writing = Trajectory::open(path, Trajectory::Access::append);
    ASSERT_TRUE(writing) << writing.error().message;
    EXPECT_TRUE(is_being_written(path));
  }
  EXPECT_FALSE(is_being_written(path));
}

}  // namespace
}  // namespace rekernel

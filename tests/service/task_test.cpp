#include "harness/service/task.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel::service {
namespace {

Result<Task> read(const std::string& text) {
  const Result<boost::json::value> value = parse_json(text, "body");
  if (!value) return value.error();
  JsonReader reader("body", *value);
  Task task = read_task(reader);
  reader.no_other_keys();
  if (const auto error = reader.error()) return *error;
  return task;
}

TEST(Task, SurvivesBeingStored) {
  const Result<Task> task = read(
      R"({"problem": "softmax", "source": "x", "plan": {"launches": []}, "tier": "correct", "samples": 20})");
  ASSERT_TRUE(task) << task.error().message;
  const Result<Task> again = task_from_text(task_text(*task));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(task_text(*again), task_text(*task));
  EXPECT_EQ(again->tier, Tier::correct);
}

TEST(Task, RefusesWhatItCannotJudge) {
  for (const char* bad :
       {"{}", R"({"problem": "softmax"})", R"({"problem": "softmax", "source": "x"})",
        R"({"problem": "softmax", "source": "x", "ptx": "y", "plan": {}})",
        R"({"problem": "softmax", "reply": "x", "plan": {}})",
        R"({"problem": "softmax", "source": "x", "plan": {}, "tier": "fast"})",
        R"({"problem": "softmax", "source": "x", "plan": {}, "target": "sm_90a"})",
        R"({"problem": "softmax", "source": "x", "plan": {}, "samples": 9})",
        R"({"problem": "softmax", "cubin": "?", "plan": {}})",
        R"({"problem": "softmax", "source": "x", "plan": {}, "sauce": 1})"}) {
    const Result<Task> task = read(bad);
    ASSERT_FALSE(task) << bad;
    EXPECT_TRUE(task.error().message.starts_with("body")) << task.error().message;
  }
}

TEST(Task, AReplyHasItsCodeAndItsPlan) {
  const boost::json::object body{
      {"problem", "softmax"},
      {"reply",
       "Here:\n```cuda\n__global__ void k(float* y) {}\n```\n```json\n{\"launches\": [{\"kernel\": "
       "\"k\", \"grid\": [1], \"block\": [32], \"args\": [\"y\"]}]}\n```\n"}};
  const Result<Task> task = read(boost::json::serialize(body));
  ASSERT_TRUE(task) << task.error().message;
  const Result<Candidate> candidate = candidate_of(*task);
  ASSERT_TRUE(candidate) << candidate.error().message;
  EXPECT_EQ(candidate->problem, "softmax");
}

TEST(Task, APlanThatIsWrongIsTheCandidatesFault) {
  const Result<Task> task =
      read(R"({"problem": "softmax", "source": "x", "plan": {"launches": 3}})");
  ASSERT_TRUE(task) << task.error().message;
  const Result<Candidate> candidate = candidate_of(*task);
  ASSERT_FALSE(candidate);
  EXPECT_NE(candidate.error().message.find("launches"), std::string::npos);
}

}  // namespace
}  // namespace rekernel::service

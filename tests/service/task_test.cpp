#include "harness/service/task.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "harness/problems/catalog.h"

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
  EXPECT_TRUE(again->other_sizes);
  const Result<Task> own_sizes = read(
      R"({"problem": "softmax", "source": "x", "plan": {"launches": []}, "other_sizes": false})");
  ASSERT_TRUE(own_sizes) << own_sizes.error().message;
  EXPECT_FALSE(task_from_text(task_text(*own_sizes))->other_sizes);
}

TEST(Task, RefusesWhatItCannotJudge) {
  for (
      const char* bad :
      {"{}", R"({"problem": "softmax"})", R"({"problem": "softmax", "source": "x"})",
       R"({"problem": "softmax", "source": "x", "ptx": "y", "plan": {}})",
       R"({"problem": "softmax", "reply": "x", "plan": {}})",
       R"({"problem": "softmax", "source": "x", "plan": {}, "tier": "fast"})",
       R"({"problem": "softmax", "source": "x", "plan": {}, "target": "sm_90a"})",
       R"({"problem": "softmax", "source": "x", "plan": {}, "samples": 9})",
       R"({"problem": "softmax", "source": "x", "plan": {}, "tier": "correct", "profile": true})",
       R"({"problem": "softmax", "source": "x", "plan": {}, "tier": "correct", "other_sizes": false})",
       R"({"problem": "softmax", "cubin": "?", "plan": {}})",
       R"({"problem": "softmax", "source": "x", "plan": {}, "sauce": 1})"}) {
    const Result<Task> task = read(bad);
    ASSERT_FALSE(task) << bad;
    EXPECT_TRUE(task.error().message.starts_with("body")) << task.error().message;
  }
}

/// A problem of a client's own.
constexpr const char* doubling = R"({
  "schema": 1, "id": "doubling", "title": "y = 2x",
  "axes": {"n": 1024},
  "inputs": {"x": {"dtype": "f32", "shape": ["n"], "draw": {"normal": [0, 1]}}},
  "outputs": {"y": {"dtype": "f32", "shape": ["n"]}},
  "definition": ["y[i] = FACTOR * x[i]"],
  "pytorch": "FACTOR * x",
  "tolerance": "fp32"
})";

std::string request_for(std::string definition, const std::string& factor) {
  for (std::size_t at; (at = definition.find("FACTOR")) != std::string::npos;) {
    definition.replace(at, 6, factor);
  }
  return R"({"source": "x", "plan": {"launches": []}, "problem": )" + definition + "}";
}

TEST(Task, TakesAProblemThatItsClientDefines) {
  const Result<Task> task = read(request_for(doubling, "2"));
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_TRUE(task->problem.starts_with("doubling_")) << task->problem;
  const Problem* problem = find_problem(task->problem);
  ASSERT_TRUE(problem);
  EXPECT_TRUE(is_strangers(*problem));
  const Result<Task> again = task_from_text(task_text(*task));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->problem, task->problem);
  // Another problem that its client calls the same is another one.
  const Result<Task> other = read(request_for(doubling, "3"));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_NE(other->problem, task->problem);
  EXPECT_EQ(find_problem(task->problem), problem);
}

TEST(Task, SaysWhatIsWrongWithADefinition) {
  const Result<Task> unknown = read(request_for(doubling, "z[i]"));
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("z"), std::string::npos) << unknown.error().message;
  for (const char* bad : {"{}", R"({"id": "a b"})", R"({"id": 7})", R"({"id": "a"})", "[]"}) {
    const Result<Task> task = read(request_for(bad, ""));
    ASSERT_FALSE(task) << bad;
    EXPECT_TRUE(task.error().message.starts_with("body: problem")) << task.error().message;
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

#include "harness/service/answer.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "harness/service/text_for_model.h"

namespace rekernel::service {
namespace {

Evaluation wrong_result() {
  Evaluation evaluation;
  evaluation.status = Status::wrong_result;
  evaluation.check = "tolerance";
  evaluation.message = "12 of 100 elements are outside of the tolerance";
  evaluation.errors = ErrorStats{
      .max_abs = 0.5, .failing = 12, .first_failing = 7, .first_value = 1.5, .first_truth = 1.0};
  return evaluation;
}

TEST(Answer, TellsEachCompilerErrorOnceWithItsLine) {
  const boost::json::array errors = compiler_errors(
      "x: does not compile for sm_90a:\nkernel.cu(12): error: identifier \"b\" is undefined\n"
      "  int a = b;\nkernel.cu(12): error: identifier \"b\" is undefined\nkernel.cu(14): error: "
      "no\n"
      "2 errors detected");
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].at("line").as_int64(), 12);
  EXPECT_EQ(errors[0].at("message").as_string(), "identifier \"b\" is undefined");
  EXPECT_EQ(errors[1].at("line").as_int64(), 14);
}

TEST(Answer, TellsCheckAndFailingElement) {
  const boost::json::object verdict = verdict_json(wrong_result(), Task{}, {"j", "d", "t"});
  EXPECT_EQ(verdict.at("kind").as_string(), "verdict");
  EXPECT_EQ(verdict.at("status").as_string(), "wrong_result");
  EXPECT_EQ(verdict.at("failed_check").as_string(), "tolerance");
  const auto& first = verdict.at("errors").at("first_failing");
  EXPECT_EQ(first.at("index").as_int64(), 7);
  EXPECT_EQ(first.at("expected").as_string(), "1");
  EXPECT_EQ(first.at("got").as_string(), "1.5");
  EXPECT_FALSE(verdict.contains("times"));
}

TEST(Answer, OfTierCompileNeverSaysThatResultsPassed) {
  Evaluation evaluation;
  evaluation.status = Status::passed;
  Task task;
  task.tier = Tier::compile;
  const boost::json::object verdict = verdict_json(evaluation, task, {"j", "d", ""});
  EXPECT_EQ(verdict.at("status").as_string(), "compiles");
  EXPECT_EQ(verdict.at("text").as_string().find("passed"), boost::json::string::npos);
}

TEST(Answer, FailuresOfTheMachineAreOfAKindOfTheirOwn) {
  const Answer answer = without_verdict(Answer::Kind::machine_error, "no_gpu", "none", false);
  const boost::json::value body = boost::json::parse(answer.body);
  EXPECT_EQ(body.at("kind").as_string(), "machine_error");
  EXPECT_EQ(body.at("code").as_string(), "no_gpu");
  EXPECT_FALSE(body.as_object().contains("status"));
}

TEST(TextForModel, KeepsToEveryBudget) {
  Evaluation evaluation = wrong_result();
  evaluation.compile_log = std::string(5000, 'w');
  for (int budget = 0; budget < 400; ++budget) {
    const std::string text = text_for_model(evaluation, Tier::timed, budget);
    EXPECT_LE(most_tokens(text), static_cast<std::size_t>(budget)) << text;
  }
}

TEST(TextForModel, TellsCompilerErrorsByLine) {
  Evaluation evaluation;
  evaluation.status = Status::compile_failed;
  evaluation.message = "does not compile:\nkernel.cu(3): error: expected a \";\"\n  x\n  ^\n";
  EXPECT_EQ(text_for_model(evaluation, Tier::timed, 200),
            "status: compile_failed\nline 3: expected a \";\"\n");
}

TEST(TextForModel, SaysTheMostImportantFirst) {
  const std::string text = text_for_model(wrong_result(), Tier::timed, 200);
  EXPECT_TRUE(text.starts_with("status: wrong_result (check: tolerance)")) << text;
  EXPECT_NE(text.find("expected 1, got 1.5"), std::string::npos) << text;
}

}  // namespace
}  // namespace rekernel::service

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

TEST(Answer, TellsErrorsBesideTheirBounds) {
  Task task;
  EXPECT_FALSE(verdict_json(wrong_result(), task, {"j", "d", "t"})
                   .at("errors")
                   .as_object()
                   .contains("bounds"));
  task.problem = "softmax";
  const boost::json::object verdict = verdict_json(wrong_result(), task, {"j", "d", "t"});
  const auto& bounds = verdict.at("errors").at("bounds").as_object();
  EXPECT_EQ(bounds.at("absolute").as_string(), "0.01");
  EXPECT_EQ(bounds.at("relative").as_string(), "0.01");
  EXPECT_GT(std::stod(std::string(bounds.at("rms_over_truth_rms").as_string())), 0);
}

TEST(Answer, TellsWhatLaunchesTakeOfTheChip) {
  LaunchUse use;
  use.target = "sm_90a";
  use.kernel = "softmax";
  use.threads = 256;
  use.registers = 64;
  use.dynamic_shared_bytes = 100000;
  use.occupancy = Occupancy{2, 16, 64, {"shared memory"}};
  LaunchUse later = use;
  later.step = 1;
  LaunchUse wider = use;
  wider.step = 2;
  wider.threads = 512;
  const boost::json::object verdict =
      verdict_json(wrong_result(), Task{}, {"j", "d", "t"}, {use, later, wider});
  const boost::json::array& launches = verdict.at("launches").as_array();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].at("dynamic_shared_bytes").as_int64(), 100000);
  EXPECT_EQ(launches[0].at("occupancy").at("warps").as_int64(), 16);
  EXPECT_EQ(launches[1].at("launch").to_number<int>(), 2);
  EXPECT_NE(verdict.at("text").as_string().find(
                "launch softmax: 256 threads a block, 64 registers, 100000 bytes of shared memory, "
                "0 bytes of spills; occupancy 25.0%, limited by shared memory"),
            boost::json::string::npos)
      << verdict.at("text").as_string();
}

TEST(Answer, NamesSoManyLaunchesAtTheMost) {
  std::vector<LaunchUse> many(100);
  for (std::size_t i = 0; i < many.size(); ++i) many[i].threads = static_cast<std::int64_t>(i);
  const auto verdict = verdict_json(wrong_result(), Task{}, {"j", "d", "t"}, many);
  EXPECT_EQ(verdict.at("launches").as_array().size(), 32u);
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

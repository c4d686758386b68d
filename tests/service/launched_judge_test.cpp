#include "harness/service/launched_judge.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel::service {
namespace {

/// Passes everything, and keeps what was asked for.
class AcceptingLauncher : public EvaluationLauncher {
 public:
  EvaluationReport evaluate(const Candidate& candidate, const EvaluateOptions& options) override {
    asked.push_back(options);
    EvaluationReport report = blank_report(candidate);
    report.evaluation.status = Status::passed;
    report.evaluation.message.clear();
    for (const std::string& id : options.external_references) {
      ReferenceResult result;
      result.id = id;
      result.unavailable = unavailable;
      report.evaluation.references.push_back(result);
    }
    return report;
  }
  std::string unavailable;  ///< why there is no time of PyTorch
  std::vector<EvaluateOptions> asked;
};

Task task_of(const std::string& problem, Tier tier) {
  Task task;
  task.problem = problem;
  task.tier = tier;
  task.source = "extern \"C\" __global__ void k(float* y) { y[0] = 0; }";
  task.plan = boost::json::parse(
                  R"({"launches": [{"kernel": "k", "grid": [1], "block": [32], "args": ["y"]}]})")
                  .as_object();
  return task;
}

class NvrtcLaunchedJudge : public ::testing::Test {
 protected:
  std::unique_ptr<LaunchedJudge> judge() {
    LaunchedJudge::Options options;
    options.launcher = plain;
    options.places = {0};
    options.device_name = "NVIDIA H200";
    if (beside_pytorch) {
      options.with_pytorch = {[this]() -> Result<EvaluationLauncher*> {
        if (!pytorch_fault.empty()) return Error{pytorch_fault};
        return beside_pytorch.get();
      }};
    }
    auto made = LaunchedJudge::make(std::move(options));
    if (!made) throw std::runtime_error(made.error().message);
    return std::move(*made);
  }

  std::shared_ptr<AcceptingLauncher> plain = std::make_shared<AcceptingLauncher>();
  std::shared_ptr<AcceptingLauncher> beside_pytorch;
  std::string pytorch_fault;
};

TEST_F(NvrtcLaunchedJudge, TimesPytorchWhereNoLibraryComputesTheProblem) {
  const std::string alone = judge()->identity(task_of("gelu", Tier::timed)).judge;
  judge()->judge(task_of("gelu", Tier::timed), 0);
  ASSERT_EQ(plain->asked.size(), 1u);
  EXPECT_TRUE(plain->asked[0].external_references.empty());

  beside_pytorch = std::make_shared<AcceptingLauncher>();
  const auto both = judge();
  for (const char* problem : {"gelu", "softmax"}) both->judge(task_of(problem, Tier::timed), 0);
  both->judge(task_of("gelu", Tier::correct), 0);
  ASSERT_EQ(beside_pytorch->asked.size(), 2u) << "all that is timed, nothing else";
  const std::vector<std::string> eager = {"pytorch_eager"};
  EXPECT_EQ(beside_pytorch->asked[0].external_references, eager);
  EXPECT_TRUE(beside_pytorch->asked[0].references.empty());
  EXPECT_TRUE(beside_pytorch->asked[1].external_references.empty());
  EXPECT_EQ(beside_pytorch->asked[1].references, std::vector<std::string>{"cudnn_softmax"});
  ASSERT_EQ(plain->asked.size(), 2u);
  EXPECT_TRUE(plain->asked[1].external_references.empty());
  // A verdict that was kept without PyTorch is not as good.
  EXPECT_NE(both->identity(task_of("gelu", Tier::timed)).judge, alone);
}

TEST_F(NvrtcLaunchedJudge, HasNoVerdictWherePytorchDoesNotStart) {
  beside_pytorch = std::make_shared<AcceptingLauncher>();
  pytorch_fault = "its process has ended";
  const Outcome outcome = judge()->judge(task_of("gelu", Tier::timed), 0);
  EXPECT_EQ(outcome.kind, Outcome::Kind::machine_failure);
  EXPECT_EQ(outcome.code, "no_pytorch");
  EXPECT_EQ(outcome.message, pytorch_fault);
}

TEST_F(NvrtcLaunchedJudge, HasNoVerdictWherePytorchGaveNoTime) {
  beside_pytorch = std::make_shared<AcceptingLauncher>();
  EXPECT_EQ(judge()->judge(task_of("gelu", Tier::timed), 0).kind, Outcome::Kind::answer);
  beside_pytorch->unavailable = "its process has ended";
  const Outcome outcome = judge()->judge(task_of("gelu", Tier::timed), 0);
  EXPECT_EQ(outcome.kind, Outcome::Kind::machine_failure);
  EXPECT_EQ(outcome.message, "pytorch_eager: its process has ended");
}

}  // namespace
}  // namespace rekernel::service

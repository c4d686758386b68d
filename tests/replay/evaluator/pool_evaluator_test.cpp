#include "replay/evaluator/pool_evaluator.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "replay/evaluator/precompile.h"
#include "replay/search/reply.h"
#include "replay/trajectory/outcome.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace json = boost::json;

Candidate candidate(const std::string& id, const std::string& code = "") {
  const auto parsed = testing::candidate_from_text(testing::kernel_reply(id + "\n" + code),
                                                   {"softmax", "fake", id, "idea", "sm_90a"});
  if (!parsed) throw std::runtime_error(parsed.error().message);
  return *parsed;
}

/// For Hopper alone, so that compilation for the test's sm_80 is skipped.
Candidate uncompiled(const std::string& id) {
  Candidate one = candidate(id);
  one.arch = Arch("sm_90a");
  return one;
}

struct Arrivals {
  std::map<std::string, json::object> records;
  std::optional<Interruption> interruption;
};

Arrivals evaluate(PoolEvaluatorOptions options, const std::vector<Candidate>& candidates) {
  std::vector<EvaluationRequest> requests;
  for (const Candidate& one : candidates) requests.push_back({one.name, &one});
  Arrivals arrivals;
  PoolEvaluator evaluator(std::move(options));
  arrivals.interruption = evaluator.evaluate(requests, [&](std::size_t i, json::object record) {
    EXPECT_TRUE(arrivals.records.emplace(requests[i].id, std::move(record)).second);
    return true;
  });
  return arrivals;
}

TEST(PoolEvaluator, ProfilesWithWhatItWasGiven) {
  const Candidate one = candidate("r1.i1.b1");
  ProfileRecord record;
  const auto without = PoolEvaluator({}).profile({"r1.i1.b1", &one}, record);
  ASSERT_TRUE(without);
  EXPECT_EQ(without->kind, Interruption::Kind::waiting);
  PoolEvaluatorOptions options;
  options.profile = [](const Candidate& profiled) -> Result<ProfileRecord> {
    if (profiled.name.empty()) return Error{"unnamed"};
    return ProfileRecord{"NVIDIA H200", "tool", profiled.name + "\n", ""};
  };
  ASSERT_FALSE(PoolEvaluator(options).profile({"r1.i1.b1", &one}, record));
  EXPECT_EQ(record.text, one.name + "\n");
  options.profile = [](const Candidate&) -> Result<ProfileRecord> { return Error{"no ncu"}; };
  const auto none = PoolEvaluator(options).profile({"r1.i1.b1", &one}, record);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->kind, Interruption::Kind::waiting);
  EXPECT_NE(none->message.find("r1.i1.b1 waits for a profiler: no ncu"), std::string::npos);
}

EvaluationReport wrong_result(const Candidate& one, const EvaluateOptions& evaluate) {
  EvaluationReport report;
  report.evaluation.kernel = one.name;
  report.evaluation.status = Status::wrong_result;
  report.evaluation.target = "sm_80";
  report.device = DeviceProperties{"GPU " + std::to_string(evaluate.device)};
  return report;
}

PoolEvaluatorOptions options_with(int devices, Judge judge = wrong_result) {
  PoolEvaluatorOptions options;
  options.target = "sm_80";
  options.toolchain = "NVRTC 13.0";
  options.workers = [devices, judge = std::move(judge)]() -> Result<std::vector<PoolWorker>> {
    if (devices == 0) return Error{"no GPU"};
    std::vector<int> ordinals;
    for (int i = 0; i < devices; ++i) ordinals.push_back(i);
    return gpu_workers(ordinals, {}, judge);
  };
  return options;
}

TEST(PoolEvaluator, UsesEveryGpuAndEachForOneCandidateAtATime) {
  std::mutex mutex;
  std::set<int> busy, used;
  const auto judge = [&](const Candidate& one, const EvaluateOptions& evaluate) {
    {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(busy.insert(evaluate.device).second) << "two candidates on one GPU";
      used.insert(evaluate.device);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    {
      const std::lock_guard lock(mutex);
      busy.erase(evaluate.device);
    }
    return wrong_result(one, evaluate);
  };
  std::vector<Candidate> candidates;
  for (int i = 0; i < 9; ++i) candidates.push_back(uncompiled("c" + std::to_string(i)));
  const Arrivals arrivals = evaluate(options_with(3, judge), candidates);
  ASSERT_FALSE(arrivals.interruption) << arrivals.interruption->message;
  EXPECT_EQ(arrivals.records.size(), 9u);
  EXPECT_EQ(used.size(), 3u);
  EXPECT_EQ(arrivals.records.at("c3").at("kernel"), "c3");
  EXPECT_EQ(arrivals.records.at("c3").at("toolchain"), "NVRTC 13.0");
  EXPECT_TRUE(arrivals.records.at("c3").at("device").as_string().starts_with("GPU "));
}

TEST(PoolEvaluator, WaitsForAGpu) {
  const Arrivals arrivals = evaluate(options_with(0), {uncompiled("a"), uncompiled("b")});
  ASSERT_TRUE(arrivals.interruption);
  EXPECT_EQ(arrivals.interruption->kind, Interruption::Kind::waiting);
  EXPECT_EQ(arrivals.interruption->message,
            "2 candidates wait for a GPU (no GPU); run the same command on a machine with one");
}

TEST(PoolEvaluator, TakesAFailureOfTheSetUpForNoVerdict) {
  const auto judge = [](const Candidate&, const EvaluateOptions&) {
    EvaluationReport report;
    report.failure = "out of memory";
    return report;
  };
  const Arrivals arrivals = evaluate(options_with(1, judge), {uncompiled("a"), uncompiled("b")});
  ASSERT_TRUE(arrivals.interruption);
  EXPECT_EQ(arrivals.interruption->kind, Interruption::Kind::failed);
  EXPECT_EQ(arrivals.interruption->message, "the evaluation of a could not be made: out of memory");
  EXPECT_TRUE(arrivals.records.empty());
}

TEST(PoolEvaluator, RefusesAnotherGpuThanThePromptsSpeakOf) {
  const auto judge = [](const Candidate&, const EvaluateOptions&) {
    EvaluationReport report;
    report.evaluation.target = "sm_89";
    return report;
  };
  const Arrivals arrivals = evaluate(options_with(1, judge), {uncompiled("a")});
  ASSERT_TRUE(arrivals.interruption);
  EXPECT_EQ(arrivals.interruption->message,
            "the evaluation of a could not be made: the search writes code for sm_80, this GPU is "
            "sm_89");
}

TEST(NvrtcPoolEvaluator, SettlesWithoutAGpuWhatDoesNotCompile) {
  std::vector<Candidate> candidates{candidate("good"), candidate("bad", "int broken = ;"),
                                    candidate("misfit")};
  auto& launch = std::get<KernelLaunch>(candidates[2].program.steps[1]);
  launch.args.pop_back();
  PoolEvaluatorOptions options = options_with(0);
  const Result<Compiler> compiler = Compiler::load();
  ASSERT_TRUE(compiler) << compiler.error().message;
  options.compile = [&](const Candidate& one) { return precompile(*compiler, one, "sm_80"); };
  options.compilations = 2;
  const Arrivals arrivals = evaluate(std::move(options), candidates);
  ASSERT_TRUE(arrivals.interruption);
  EXPECT_EQ(arrivals.interruption->message.substr(0, 26), "1 candidate waits for a GP");
  ASSERT_EQ(arrivals.records.size(), 2u);
  EXPECT_EQ(arrivals.records.at("bad").at("status"), "compile_failed");
  EXPECT_NE(arrivals.records.at("bad").at("message").as_string().find("error"), std::string::npos);
  EXPECT_EQ(arrivals.records.at("misfit").at("status"), "invalid_plan");
  EXPECT_EQ(arrivals.records.at("misfit").at("device"), "");
}

TEST(NvrtcPrecompile, EndsACompilationThatDoesNotEnd) {
  const Candidate bomb =
      candidate("bomb",
                "template <int A, int B> struct Bomb { static constexpr long long value = "
                "Bomb<A - 1, 2 * B>::value + Bomb<A - 1, 2 * B + 1>::value; };\n"
                "template <int B> struct Bomb<0, B> { static constexpr long long value = B; };\n"
                "__device__ long long boom = Bomb<24, 1>::value;\n");
  const Result<Compiler> compiler = Compiler::load();
  ASSERT_TRUE(compiler) << compiler.error().message;
  const auto verdict = precompile(*compiler, bomb, "sm_80", std::chrono::seconds(2));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->status, Status::timed_out);
  EXPECT_TRUE(verdict->message.starts_with("not compiled within ")) << verdict->message;
}

}  // namespace
}  // namespace rekernel

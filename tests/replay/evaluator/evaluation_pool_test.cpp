#include "replay/evaluator/evaluation_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <boost/json.hpp>

#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "replay/evaluator/pool_evaluator.h"
#include "replay/trajectory/outcome.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Candidates that are told apart by their name alone.
std::vector<Candidate> named_candidates(std::size_t count) {
  std::vector<Candidate> candidates(count);
  for (std::size_t i = 0; i < count; ++i) candidates[i].name = std::to_string(i);
  return candidates;
}

EvaluationReport passing(const Candidate& candidate) {
  EvaluationReport report;
  report.evaluation.kernel = candidate.name;
  report.evaluation.status = Status::wrong_result;
  return report;
}

EvaluationReport failing(const std::string& why) {
  EvaluationReport report;
  report.failure = why;
  return report;
}

/// A round of a pool, and what came out of it.
struct Pool {
  explicit Pool(std::size_t count) : candidates(named_candidates(count)) {}

  void add(std::function<EvaluationReport(const Candidate&)> evaluate) {
    workers.push_back({"GPU " + std::to_string(workers.size()), std::move(evaluate)});
  }

  void run() {
    options.say = [this](const std::string& text) {
      const std::lock_guard lock(mutex);
      said.push_back(text);
    };
    pool.emplace(workers, options);
    again();
  }

  /// The next round, with the workers that are left.
  void again() {
    PoolTask task;
    for (const Candidate& candidate : candidates) {
      task.candidates.push_back(&candidate);
      task.ids.push_back("c" + candidate.name);
    }
    task.preparers = preparers;
    task.prepare = [this](std::size_t i) { return prepare ? prepare(i) : std::nullopt; };
    task.settle = [this](std::size_t i, const EvaluationReport& report) {
      EXPECT_TRUE(report.failure.empty());
      EXPECT_TRUE(settled.insert(i).second) << "settled twice";
      return settled.size() != stop_at;
    };
    settled.clear();
    interruption = pool->run(task, unsettled);
  }

  bool said_that(const std::string& part) const {
    return std::any_of(said.begin(), said.end(), [&](const std::string& text) {
      return text.find(part) != std::string::npos;
    });
  }

  std::vector<Candidate> candidates;
  std::vector<PoolWorker> workers;
  PoolOptions options;
  std::function<std::optional<EvaluationReport>(std::size_t)> prepare;
  unsigned preparers = 2;
  std::size_t stop_at = 0;
  std::optional<EvaluationPool> pool;
  std::mutex mutex;
  std::vector<std::string> said;
  std::set<std::size_t> settled;
  std::vector<std::size_t> unsettled;
  std::optional<Interruption> interruption;
};

TEST(EvaluationPool, GivesTheCandidatesOfAFailedWorkerToOthers) {
  Pool round(12);
  std::atomic<int> tries = 0;
  round.add([&](const Candidate&) {
    ++tries;
    return failing("the GPU stays throttled");
  });
  for (int i = 0; i < 2; ++i) {
    round.add([](const Candidate& one) {
      std::this_thread::sleep_for(milliseconds(5));
      return passing(one);
    });
  }
  round.run();
  EXPECT_FALSE(round.interruption) << round.interruption->message;
  EXPECT_EQ(round.settled.size(), 12u);
  EXPECT_EQ(tries, 1) << "one failure, until another worker shows whose fault it was";
  EXPECT_EQ(round.pool->workers_left(), 2u);
  EXPECT_TRUE(round.said_that("GPU 0 leaves the pool: the GPU stays throttled"));
  // It stays outside.
  round.again();
  EXPECT_EQ(round.settled.size(), 12u);
  EXPECT_EQ(tries, 1);
}

TEST(EvaluationPool, SetsACandidateAsideThatFailsEverywhere) {
  Pool round(20);
  std::atomic<int> tries = 0;
  for (int i = 0; i < 4; ++i) {
    round.add([&](const Candidate& one) {
      if (one.name != "7") return passing(one);
      ++tries;
      return failing("out of memory");
    });
  }
  round.run();
  ASSERT_TRUE(round.interruption);
  EXPECT_EQ(round.interruption->message, "the evaluation of c7 could not be made: out of memory");
  EXPECT_EQ(round.settled.size(), 19u);
  EXPECT_EQ(round.pool->workers_left(), 4u);
  EXPECT_EQ(tries, 4) << "three times, and a last time at the end";
  EXPECT_TRUE(round.said_that("c7 is set aside: out of memory"));
}

TEST(EvaluationPool, EndsWhereEveryWorkerFails) {
  for (const std::size_t count : {1u, 2u, 3u, 9u}) {
    Pool round(12);
    for (std::size_t i = 0; i < count; ++i) {
      round.add([](const Candidate&) { return failing("fell off the bus"); });
    }
    round.run();
    ASSERT_TRUE(round.interruption) << count;
    EXPECT_EQ(round.interruption->kind, Interruption::Kind::failed);
    EXPECT_TRUE(round.interruption->message.ends_with("could not be made: fell off the bus"))
        << round.interruption->message;
    EXPECT_TRUE(round.settled.empty());
  }
}

TEST(EvaluationPool, TakesWhatThrowsForAFailure) {
  Pool round(4);
  round.add([](const Candidate&) -> EvaluationReport { throw std::runtime_error("no driver"); });
  round.add(passing);
  round.run();
  EXPECT_FALSE(round.interruption);
  EXPECT_EQ(round.settled.size(), 4u);
}

/// Whatever fails, a round ends, nothing is settled twice, and what can be settled is, as long as
/// one worker is sound.
TEST(EvaluationPool, SettlesWhatCanBeSettled) {
  std::mt19937 random(20251121);
  for (int trial = 0; trial < 300 && !HasFailure(); ++trial) {
    SCOPED_TRACE(trial);
    const std::size_t workers = 1 + random() % 7;
    const std::size_t count = 1 + random() % 30;
    std::set<std::string> poison;
    for (std::size_t i = 0; i < random() % 3; ++i) poison.insert(std::to_string(random() % count));
    Pool round(count);
    std::size_t sound = 0;
    for (std::size_t i = 0; i < workers; ++i) {
      const bool dead = random() % 3 == 0;
      sound += !dead;
      round.add([&poison, dead, pause = random() % 3](const Candidate& one) {
        std::this_thread::sleep_for(std::chrono::microseconds(100 * pause));
        return dead || poison.contains(one.name) ? failing("broken") : passing(one);
      });
    }
    round.run();
    EXPECT_LE(round.settled.size(), count - poison.size());
    if (sound > poison.size() + 1) {
      EXPECT_EQ(round.settled.size(), count - poison.size());
    }
    EXPECT_EQ(round.interruption.has_value(), round.settled.size() < count);
  }
}

TEST(EvaluationPool, BeginsBeforeTheLastCandidateIsPrepared) {
  Pool round(6);
  std::atomic<bool> evaluated = false;
  round.prepare = [&](std::size_t i) -> std::optional<EvaluationReport> {
    const auto patience = Clock::now() + std::chrono::seconds(20);
    while (i == 5 && !evaluated && Clock::now() < patience) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    if (i == 2) return passing(Candidate{});  // settled without a worker
    return std::nullopt;
  };
  std::atomic<int> asked = 0;
  round.add([&](const Candidate& one) {
    ++asked;
    evaluated = true;
    return passing(one);
  });
  const auto start = Clock::now();
  round.run();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(round.settled.size(), 6u);
  EXPECT_EQ(asked, 5);
}

TEST(EvaluationPool, PreparesMoreAtOnceOnceWorkersWait) {
  Pool round(64);
  round.preparers = 32;
  std::mutex mutex;
  std::size_t present = 0;
  std::size_t most_at_first = 0;
  std::size_t most = 0;
  std::atomic<int> evaluated = 0;
  round.prepare = [&](std::size_t) -> std::optional<EvaluationReport> {
    {
      const std::lock_guard lock(mutex);
      most = std::max(most, ++present);
      if (evaluated == 0) most_at_first = std::max(most_at_first, present);
    }
    std::this_thread::sleep_for(milliseconds(20));
    const std::lock_guard lock(mutex);
    --present;
    return std::nullopt;
  };
  round.add([&](const Candidate& one) {
    ++evaluated;
    return passing(one);
  });
  round.run();
  EXPECT_EQ(round.settled.size(), 64u);
  EXPECT_LE(most_at_first, 4u);
  EXPECT_GT(most, 4u);
  EXPECT_LE(most, 32u);
}

TEST(EvaluationPool, StopsWhenNothingMoreIsWanted) {
  Pool round(50);
  round.stop_at = 3;
  std::atomic<int> asked = 0;
  for (int i = 0; i < 2; ++i) {
    round.add([&](const Candidate& one) {
      ++asked;
      return passing(one);
    });
  }
  round.run();
  EXPECT_FALSE(round.interruption);
  EXPECT_EQ(round.settled.size(), 3u);
  EXPECT_LE(asked, 6);
}

TEST(EvaluationPool, KeepsWhatWasEvaluatedWhileAnotherFailed) {
  Pool round(2);
  std::atomic<bool> failed = false, begun = false;
  round.options.trouble = [&] {
    failed = true;
    return Interruption{Interruption::Kind::failed, "interrupted"};
  };
  for (int i = 0; i < 2; ++i) {
    round.add([&](const Candidate& one) {
      if (one.name == "0") {
        while (!begun) std::this_thread::sleep_for(milliseconds(1));
        return failing("interrupted");
      }
      begun = true;
      while (!failed) std::this_thread::sleep_for(milliseconds(1));
      std::this_thread::sleep_for(milliseconds(20));
      return passing(one);
    });
  }
  round.run();
  ASSERT_TRUE(round.interruption);
  EXPECT_EQ(round.interruption->message, "interrupted");
  EXPECT_EQ(round.settled, std::set<std::size_t>{1});
}

TEST(EvaluationPool, BlamesNoPlaceOfALauncher) {
  Pool round(30);
  round.options.workers_differ = false;
  for (int i = 0; i < 3; ++i) {
    round.add([&](const Candidate& one) {
      return one.name == "4" ? failing("the job was lost") : passing(one);
    });
  }
  round.run();
  ASSERT_TRUE(round.interruption);
  EXPECT_EQ(round.interruption->message,
            "the evaluation of c4 could not be made: the job was lost");
  EXPECT_EQ(round.settled.size(), 29u);
  EXPECT_EQ(round.pool->workers_left(), 3u);
  // But where everything fails, it does not go through all candidates.
  Pool broken(1000);
  broken.options.workers_differ = false;
  std::atomic<int> asked = 0;
  for (int i = 0; i < 3; ++i) {
    broken.add([&](const Candidate&) {
      ++asked;
      return failing("no such partition");
    });
  }
  broken.run();
  EXPECT_TRUE(broken.interruption);
  EXPECT_LE(asked, 10);
}

/// The same measurements give the same bytes, whatever the number of workers and their order.
TEST(EvaluationPool, DoesNotShowInTheTrajectory) {
  TemporaryFolder folder;
  std::string expected;
  for (const int workers : {1, 2, 5, 16}) {
    std::mt19937 random(static_cast<unsigned>(workers));
    std::mutex mutex;
    PoolEvaluatorOptions options;
    options.target = "sm_90a";
    options.toolchain = "NVRTC 13.0";
    options.compilations = 3;
    options.compile = [](const Candidate& one) -> std::optional<CompileVerdict> {
      if (one.name.ends_with("b2")) return CompileVerdict{Status::compile_failed, "expected a ;"};
      return std::nullopt;
    };
    options.workers = [&]() -> Result<std::vector<PoolWorker>> {
      std::vector<int> ordinals;
      for (int i = 0; i < workers; ++i) ordinals.push_back(i);
      return gpu_workers(ordinals, {}, [&](const Candidate& one, const EvaluateOptions&) {
        {
          const std::lock_guard lock(mutex);
          const auto pause = std::chrono::microseconds(random() % 3000);
          std::this_thread::sleep_for(pause);
        }
        EvaluationReport report;
        report.evaluation = testing::passing_evaluation(
            one, 600'000 + static_cast<std::int64_t>(std::hash<std::string>{}(one.name) % 1000));
        report.device = DeviceProperties{"NVIDIA H200"};
        return report;
      });
    };
    PoolEvaluator evaluator(std::move(options));
    testing::FakeModel model;
    for (int round = 1; round <= 3; ++round) {
      for (int idea = 1; idea <= 2; ++idea) {
        for (int branch = 1; branch <= 4; ++branch) {
          const std::string id = "r" + std::to_string(round) + ".i" + std::to_string(idea) + ".b" +
                                 std::to_string(branch);
          model.replies[id] = testing::kernel_reply(id);
        }
      }
    }
    const auto path = folder / (std::to_string(workers) + ".jsonl");
    Header header = testing::small_header(3, 2, 4);
    header.settings.references.clear();
    const SearchEnd end = testing::run_on_file(path, header, model, evaluator);
    ASSERT_FALSE(end.interruption) << end.interruption->message;
    const std::string text = testing::read_text(path);
    if (expected.empty()) expected = text;
    EXPECT_TRUE(text == expected) << workers << " workers";
    EXPECT_FALSE(replay_exactly(path).interruption);
  }
}

std::chrono::duration<double> processor_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return std::chrono::duration<double>(seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

std::size_t resident_bytes() {
  std::ifstream pages("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  pages >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// 10,000 made-up candidates on 256 made-up workers: what the processor does meanwhile is the
/// scheduler's, since an evaluation here does nothing but wait. Its memory does not grow.
TEST(EvaluationPool, TakesLessThanAHundredthOfTheTimeForItself) {
  constexpr std::size_t count = 10000;
  constexpr int workers = 256;
  constexpr milliseconds one_evaluation(40);
  const std::vector<Candidate> candidates = named_candidates(count);
  std::vector<EvaluationRequest> requests;
  for (const Candidate& one : candidates) requests.push_back({"c" + one.name, &one});
  PoolEvaluatorOptions options;
  options.target = "sm_90a";
  options.workers = [&]() -> Result<std::vector<PoolWorker>> {
    std::vector<PoolWorker> list;
    for (int i = 0; i < workers; ++i) {
      list.push_back({"GPU", [&](const Candidate& one) {
                        std::this_thread::sleep_for(one_evaluation);
                        return passing(one);
                      }});
    }
    return list;
  };
  PoolEvaluator evaluator(std::move(options));
  std::size_t settled = 0;
  const auto start = Clock::now();
  const auto processor_start = processor_time();
  std::size_t bytes_early = 0;
  std::size_t bytes_late = 0;
  evaluator.evaluate(requests, [&](std::size_t, const boost::json::object&) {
    ++settled;
    if (settled == count / 10) bytes_early = resident_bytes();
    if (settled == count - workers) bytes_late = resident_bytes();
    return true;
  });
  const std::chrono::duration<double> wall = Clock::now() - start;
  const double own = (processor_time() - processor_start).count();
  const double evaluating = std::chrono::duration<double>(one_evaluation).count() * count;
  EXPECT_EQ(settled, count);
  EXPECT_LT(own, 0.01 * evaluating);
#ifndef __SANITIZE_ADDRESS__  // which keeps what is freed
  // Nothing of what is done stays: a record has some thousand bytes.
  EXPECT_LT(bytes_late, bytes_early + 200 * count);
#endif
  RecordProperty("processor_seconds", std::to_string(own));
  RecordProperty("evaluation_seconds", std::to_string(evaluating));
  RecordProperty("wall_seconds", std::to_string(wall.count()));
}

}  // namespace
}  // namespace rekernel

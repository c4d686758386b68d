#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <vector>

#include "harness/service/judge.h"

namespace rekernel::service {

/// Looks at nothing and makes verdicts up, each of which says so: for tests of the service, of
/// clients and of training loops without a GPU. Times are a function of the code alone. A line
/// "// made-up: WORD" in the code asks for more: a status ("wrong_result"), "machine_failure",
/// "device_lost", "exception" (every time), or "slow" (ten times the judging time).
class MadeUpJudge : public JudgeBackend {
 public:
  struct Options {
    unsigned devices = 1;
    std::chrono::microseconds compile_time{0};
    std::chrono::microseconds judge_time{0};
    double failure_share = 0;  ///< of judgings that fail by chance, half of them with their device
    std::chrono::milliseconds lost_for{50};  ///< until a lost device answers again
    std::uint64_t seed = 1;
  };
  explicit MadeUpJudge(const Options& options);

  unsigned devices() const override { return options_.devices; }
  std::string no_device() const override { return options_.devices > 0 ? "" : "none made up"; }
  Identity identity(const Task& task) const override;
  Outcome compile(const Task& task) override;
  Outcome judge(const Task& task, int device) override;
  bool answers(int device) override;

 private:
  using Clock = std::chrono::steady_clock;
  Outcome failure(int device, bool lost);

  const Options options_;
  std::mutex mutex_;  ///< of what follows
  std::mt19937_64 chance_;
  std::vector<Clock::time_point> lost_until_;
};

}  // namespace rekernel::service

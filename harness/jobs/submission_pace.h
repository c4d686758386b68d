#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "harness/jobs/slurm.h"

namespace rekernel {

/// How many tasks are submitted together, and when: fewer and later after refusals.
class SubmissionPace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Waits `pause` after a refusal, doubled after each up to `longest_pause`.
  SubmissionPace(std::chrono::milliseconds pause, std::chrono::milliseconds longest_pause)
      : first_pause_(pause), longest_pause_(longest_pause), pause_(pause) {}

  /// Whether the next submission may be tried now, and of how many tasks at most.
  bool is_due(Clock::time_point now) const { return now >= next_; }
  std::size_t most_tasks() const { return most_; }

  void note_success();
  /// When to try again, and how long that is from now.
  struct Next {
    enum class When {
      at_once,  ///< with fewer tasks
      later,
      never,
    };
    When when = When::later;
    std::chrono::milliseconds pause{0};
  };
  /// What follows on a refusal of so many tasks.
  Next note_refusal(SlurmRefusal refusal, std::size_t tasks, Clock::time_point now);

 private:
  static constexpr std::size_t most_tasks_together = 100;

  std::chrono::milliseconds first_pause_;
  std::chrono::milliseconds longest_pause_;
  std::chrono::milliseconds pause_;
  std::size_t largest_array_ = most_tasks_together;  ///< that Slurm takes, as far as is known
  std::size_t most_ = most_tasks_together;           ///< that it takes now
  int last_words_ = 0;                               ///< refusals in a row that look final
  Clock::time_point next_;
};

}  // namespace rekernel

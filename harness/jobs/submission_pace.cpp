#include "harness/jobs/submission_pace.h"

#include <algorithm>

namespace rekernel {

namespace {

/// Consecutive refusals, each as if there would never be such a job, that end the submission.
/// Slurm took such jobs once, and a controller that has just begun knows no node yet.
constexpr int most_refusals = 4;

}  // namespace

void SubmissionPace::note_success() {
  most_ = std::min(2 * most_, largest_array_);
  pause_ = first_pause_;
  last_words_ = 0;
}

SubmissionPace::Next SubmissionPace::note_refusal(SlurmRefusal refusal, std::size_t tasks,
                                                  Clock::time_point now) {
  if (refusal == SlurmRefusal::array && tasks > 1) {
    largest_array_ = most_ = tasks / 2;
    return {Next::When::at_once};
  }
  if (refusal == SlurmRefusal::full) most_ = std::max<std::size_t>(1, tasks / 2);
  const bool looks_final = refusal == SlurmRefusal::permanent || refusal == SlurmRefusal::array;
  if (looks_final && ++last_words_ >= most_refusals) return {Next::When::never};
  next_ = now + pause_;
  const Next next{Next::When::later, pause_};
  pause_ = std::min(2 * pause_, longest_pause_);
  return next;
}

}  // namespace rekernel

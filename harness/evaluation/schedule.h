#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace rekernel {

/// What a run of the candidate is for. Only the referee knows: a run looks the same to the kernel,
/// whatever it is for, but for the values of its inputs.
enum class Purpose {
  timed,   ///< its time counts; new inputs from the problem's own distributions
  repeat,  ///< the inputs of a timed run once more: are the outputs equal bit for bit?
  stress,  ///< inputs of a stress case
};

/// Inputs of one or several runs.
struct PlannedInput {
  std::uint64_t seed = 0;
  int stress_case = -1;  ///< of the problem; −1: the problem's own distributions
};

struct PlannedRun {
  Purpose purpose = Purpose::timed;
  int process = 0;        ///< of the candidate's two
  std::size_t input = 0;  ///< in Schedule::inputs
  bool judged = false;    ///< compared with the truth, or with a judged run on the same inputs
  bool watched = false;   ///< afterwards somebody looks whether the GPU is idle
  /// Left out where the candidate is slow: see Trial. Those that are left are judged.
  bool spare = false;
};

struct ScheduleRequest {
  int processes = 2;
  int timed = 60;
  int judged = 60;  ///< of the timed runs; those that are repeated are among them
  /// Timed runs of which none is spare, at most `judged`; of a stress case, the first run in each
  /// process is not spare.
  int needed = 60;
  int watched = 0;  ///< of all runs
  /// Timed runs that are repeated: so many in the same process, and as many in the other one.
  int repeats = 2;
  int stress_cases = 0;
  int inputs_per_case = 1;
  int runs_per_case = 2;  ///< in each process; each of the case's inputs is run in both
};

/// The candidate's runs in the order in which they are made.
struct Schedule {
  std::vector<PlannedInput> inputs;
  std::vector<PlannedRun> runs;

  bool is_shared(std::size_t input) const;  ///< by several runs
};

/// A random order, in which the place of a run says nothing of what it is for: each run of each
/// purpose is as likely at each place and in each process. A repeat in the same process comes after
/// the timed run, whose result might be remembered there otherwise; one in the other process comes
/// before it, so that repeats are neither late nor early. `random` gives 64 bits that no kernel can
/// foresee.
Schedule draw_schedule(const ScheduleRequest& request,
                       const std::function<std::uint64_t()>& random);

}  // namespace rekernel

#include "harness/evaluation/schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rekernel {

namespace {

/// So many of the numbers below `count`, in random order.
std::vector<std::size_t> chosen(std::size_t count, std::size_t wanted,
                                const std::function<std::uint64_t()>& random) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(numbers[i], numbers[i + random() % (count - i)]);
  }
  numbers.resize(std::min(wanted, count));
  return numbers;
}

class Drawing {
 public:
  Drawing(const ScheduleRequest& request, const std::function<std::uint64_t()>& random)
      : request_(request), random_(random) {}

  Schedule draw() {
    add_timed_runs();
    add_repeats();
    add_stress_runs();
    shuffle();
    order_repeats();
    for (const std::size_t i : chosen(count(), number(request_.watched), random_)) {
      schedule_.runs[i].watched = true;
    }
    return std::move(schedule_);
  }

 private:
  static std::size_t number(int value) { return static_cast<std::size_t>(std::max(value, 0)); }
  std::size_t count() const { return schedule_.runs.size(); }

  std::size_t add_input(int stress_case) {
    schedule_.inputs.push_back({random_(), stress_case});
    return schedule_.inputs.size() - 1;
  }

  /// As many in each process, or one more.
  void add_timed_runs() {
    const std::vector<std::size_t> order =
        chosen(number(request_.timed), number(request_.timed), random_);
    const std::size_t shift = random_() % 2;
    schedule_.runs.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      PlannedRun& run = schedule_.runs[order[i]];
      run.process = static_cast<int>((i + shift) % number(request_.processes));
      run.input = add_input(-1);
      run.judged = i < number(request_.judged);
      run.spare = i >= number(std::min(request_.needed, request_.judged));
    }
  }

  void add_repeats() {
    const std::size_t pairs =
        number(request_.processes > 1 ? 2 * request_.repeats : request_.repeats);
    // Judged ones first, as far as there are enough.
    std::vector<std::size_t> repeated = chosen(count(), count(), random_);
    std::stable_partition(repeated.begin(), repeated.end(),
                          [&](std::size_t i) { return schedule_.runs[i].judged; });
    repeated.resize(std::min(pairs, count()));
    for (std::size_t i = 0; i < repeated.size(); ++i) {
      PlannedRun& timed = schedule_.runs[repeated[i]];
      timed.judged = true;
      timed.spare = false;
      PlannedRun repeat = timed;
      repeat.purpose = Purpose::repeat;
      if (i % 2 == 1) repeat.process = (timed.process + 1) % request_.processes;
      schedule_.runs.push_back(repeat);
    }
  }

  void add_stress_runs() {
    const int processes = request_.processes;
    for (int stress = 0; stress < request_.stress_cases; ++stress) {
      std::vector<std::size_t> inputs;
      for (int i = 0; i < request_.inputs_per_case; ++i) inputs.push_back(add_input(stress));
      for (int i = 0; i < request_.runs_per_case; ++i) {
        for (int process = 0; process < processes; ++process) {
          schedule_.runs.push_back(
              {Purpose::stress, process, inputs[number(i) % inputs.size()], true, false, i > 0});
        }
      }
    }
  }

  void shuffle() {
    std::vector<PlannedRun> shuffled;
    for (const std::size_t i : chosen(count(), count(), random_)) {
      shuffled.push_back(schedule_.runs[i]);
    }
    schedule_.runs = std::move(shuffled);
  }

  void order_repeats() {
    for (std::size_t i = 0; i < count(); ++i) {
      if (schedule_.runs[i].purpose != Purpose::repeat) continue;
      for (std::size_t j = 0; j < count(); ++j) {
        PlannedRun& timed = schedule_.runs[j];
        PlannedRun& repeat = schedule_.runs[i];
        if (timed.purpose != Purpose::timed || timed.input != repeat.input) continue;
        const bool repeat_is_later = timed.process == repeat.process;
        if ((i > j) != repeat_is_later) std::swap(timed, repeat);
        break;
      }
    }
  }

  const ScheduleRequest& request_;
  const std::function<std::uint64_t()>& random_;
  Schedule schedule_;
};

}  // namespace

bool Schedule::is_shared(std::size_t input) const {
  return std::count_if(runs.begin(), runs.end(),
                       [&](const PlannedRun& run) { return run.input == input; }) > 1;
}

Schedule draw_schedule(const ScheduleRequest& request,
                       const std::function<std::uint64_t()>& random) {
  return Drawing(request, random).draw();
}

}  // namespace rekernel

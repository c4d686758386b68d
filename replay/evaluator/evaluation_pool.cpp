#include "replay/evaluator/evaluation_pool.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "harness/base/text.h"

namespace rekernel {
namespace {

/// Workers that a candidate is tried on before it counts as what makes them fail.
constexpr std::size_t most_tries = 3;
/// For a launcher whose places are alike: failures in a row that no place in particular explains.
constexpr int most_failures_in_a_row = 5;
constexpr std::size_t named_candidates = 8;
/// Preparations at once for each worker, to begin with: all cores at once would keep the first
/// candidate waiting, and the processes that it is to be evaluated in.
constexpr std::size_t preparations_of_a_worker = 4;

}  // namespace

EvaluationPool::EvaluationPool(std::vector<PoolWorker> workers, PoolOptions options)
    : options_(std::move(options)) {
  for (PoolWorker& worker : workers) places_.push_back({std::move(worker)});
}

std::size_t EvaluationPool::workers_left() const {
  return static_cast<std::size_t>(
      std::count_if(places_.begin(), places_.end(), [](const Place& one) { return !one.left; }));
}

/// One call of run(): the queue of what is prepared, and the threads that serve it.
class EvaluationPool::Round {
 public:
  Round(EvaluationPool& pool, const PoolTask& task)
      : pool_(pool),
        task_(task),
        unsettled_(task.candidates.size()),
        paused_(pool.places_.size(), false) {
    if (!pool.places_.empty()) at_once_ = preparations_of_a_worker * pool.places_.size();
  }

  std::optional<Interruption> run(std::vector<std::size_t>& unsettled) {
    {
      std::vector<std::jthread> threads;
      const auto preparers = std::min<std::size_t>(std::max(1u, task_.preparers), unsettled_);
      preparing_ = preparers;
      for (std::size_t i = 0; i < preparers; ++i) threads.emplace_back([this] { prepare(); });
      for (std::size_t i = 0; i < pool_.places_.size(); ++i) {
        if (!pool_.places_[i].left) threads.emplace_back([this, i] { work(i); });
      }
    }
    if (pool_.places_.empty()) {
      unsettled.assign(ready_.begin(), ready_.end());
    } else if (!interruption_ && !stopped_ && unsettled_ > 0) {
      interruption_ = what_could_not_be_made();
    }
    return std::move(interruption_);
  }

 private:
  /// A candidate that failed somewhere.
  struct Failures {
    std::set<std::size_t> places;
    std::string last;
    bool set_aside = false;
    bool last_try = false;
  };

  // ── Preparation ──────────────────────────────────────────────────────────────────────────────

  void prepare() {
    while (const auto index = next_to_prepare()) {
      std::optional<EvaluationReport> report = guarded([&] { return task_.prepare(*index); });
      const bool is_settled = report && report->failure.empty();
      if (is_settled) settle(*index, *report);
      const std::lock_guard lock(mutex_);
      if (!is_settled) {
        ready_.insert(*index);
        more_.notify_one();
      }
      --in_preparation_;
      room_.notify_one();
    }
    const std::lock_guard lock(mutex_);
    --preparing_;
    if (preparing_ == 0) more_.notify_all();
  }

  std::optional<std::size_t> next_to_prepare() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] {
      return stopped_ || next_ == task_.candidates.size() || in_preparation_ < at_once_;
    });
    if (stopped_ || next_ == task_.candidates.size()) return std::nullopt;
    ++in_preparation_;
    const std::size_t index = next_++;
    if (next_ == task_.candidates.size()) room_.notify_all();  // nothing more to wait for
    return index;
  }

  /// A worker that came back has nothing to do: preparations are slower than evaluations.
  void prepare_more_at_once() {
    if (next_ == task_.candidates.size() || at_once_ >= task_.preparers) return;
    at_once_ *= 2;
    room_.notify_all();
  }

  /// What throws is a failure, and must not take the other workers along.
  template <class Function>
  static std::optional<EvaluationReport> guarded(const Function& function) {
    EvaluationReport report;
    try {
      return function();
    } catch (const std::exception& error) {
      report.failure = error.what();
    }
    return report;
  }

  // ── Evaluation ───────────────────────────────────────────────────────────────────────────────

  void work(std::size_t place) {
    for (bool first = true; const auto index = take(place, first); first = false) {
      const EvaluationReport report = *guarded([&]() -> std::optional<EvaluationReport> {
        return pool_.places_[place].worker.evaluate(*task_.candidates[*index]);
      });
      if (report.failure.empty()) {
        note_success(place, *index);
        settle(*index, report);
      } else {
        note_failure(place, *index, report.failure);
      }
    }
  }

  /// Waits for a candidate that this worker has not failed on. Nothing when none will come.
  std::optional<std::size_t> take(std::size_t place, bool first) {
    std::unique_lock lock(mutex_);
    if (!first && ready_.empty()) prepare_more_at_once();
    while (!stopped_ && !finished() && !pool_.places_[place].left) {
      if (paused_[place]) {
        resumed_.wait(lock);
        continue;
      }
      const auto found = first_for(place);
      if (found != ready_.end()) {
        const std::size_t index = *found;
        ready_.erase(found);
        ++evaluating_;
        return index;
      }
      if (!unblock()) more_.wait(lock);
    }
    return std::nullopt;
  }

  std::set<std::size_t>::iterator first_for(std::size_t place) {
    return std::find_if(ready_.begin(), ready_.end(),
                        [&](std::size_t index) { return !has_failed_on(place, index); });
  }

  /// Where everybody waits for everybody else, those that pause get another chance; without any,
  /// what is left has failed on all workers that there are.
  bool unblock() {
    if (evaluating_ > 0 || preparing_ > 0 || ready_.empty()) return false;
    bool paused = false;
    for (std::size_t i = 0; i < paused_.size(); ++i) {
      if (pool_.places_[i].left) continue;
      if (!paused_[i] && first_for(i) != ready_.end()) return false;
      paused = paused || paused_[i];
    }
    if (paused) {
      for (std::size_t i = 0; i < paused_.size(); ++i) give_another_chance(i);
    } else {
      const std::set<std::size_t> hopeless = ready_;
      for (const std::size_t index : hopeless) set_aside(index, failures_[index]);
    }
    wake_all();
    return true;
  }

  bool has_failed_on(std::size_t place, std::size_t index) const {
    const auto failures = failures_.find(index);
    return failures != failures_.end() && failures->second.places.contains(place);
  }

  /// Also after a stop for another's failure: what was evaluated is not thrown away.
  void settle(std::size_t index, const EvaluationReport& report) {
    const std::lock_guard arrivals(arrival_mutex_);
    if (closed_) return;
    closed_ = !task_.settle(index, report);
    const std::lock_guard lock(mutex_);
    --unsettled_;
    stopped_ = stopped_ || closed_;
    if (stopped_ || finished()) wake_all();
  }

  /// Whether everything is settled that can be. What was set aside is tried once more, at the end,
  /// by one worker after the other of those that have not failed on it.
  bool finished() {
    if (unsettled_ > set_aside_) return false;
    if (std::exchange(retried_, true)) return true;
    for (auto& [index, failures] : failures_) {
      if (!failures.set_aside || !has_hope(failures)) continue;
      failures.set_aside = false;
      failures.last_try = true;
      --set_aside_;
      ready_.insert(index);
    }
    wake_all();
    return unsettled_ == set_aside_;
  }

  void wake_all() {
    more_.notify_all();
    resumed_.notify_all();
    room_.notify_all();
  }

  // ── Failures ─────────────────────────────────────────────────────────────────────────────────

  void note_success(std::size_t place, std::size_t index) {
    const std::lock_guard lock(mutex_);
    --evaluating_;
    pool_.places_[place].suspected = false;
    failures_in_a_row_ = 0;
    const auto failures = failures_.find(index);
    if (failures == failures_.end()) return;
    const Failures elsewhere = std::move(failures->second);
    failures_.erase(failures);
    if (elsewhere.set_aside) --set_aside_;  // while it was here
    for (const std::size_t other : elsewhere.places) leave(other, elsewhere.last);
    wake_all();
  }

  void note_failure(std::size_t place, std::size_t index, const std::string& failure) {
    const std::lock_guard lock(mutex_);
    --evaluating_;
    if (auto trouble = pool_.options_.trouble ? pool_.options_.trouble() : std::nullopt) {
      return stop(std::move(*trouble));
    }
    Failures& failures = failures_[index];
    failures.places.insert(place);
    failures.last = failure;
    if (!pool_.options_.workers_differ) {
      set_aside(index, failures);
      if (++failures_in_a_row_ >= most_failures_in_a_row) stop(what_could_not_be_made());
    } else if (!failures.last_try) {
      blame(place, index, failures);
    } else if (has_hope(failures)) {
      ready_.insert(index);
    } else {
      set_aside(index, failures);
    }
    wake_all();
  }

  /// The worker or the candidate? Another worker will show.
  void blame(std::size_t place, std::size_t index, Failures& failures) {
    if (!failures.set_aside) ready_.insert(index);
    if (pool_.places_[place].suspected) {
      leave(place, failures.last);
    } else {
      paused_[place] = true;
      say(pool_.places_[place].worker.name + ": the evaluation of " + task_.ids[index] +
          " could not be made: " + failures.last);
    }
    const bool tried = failures.places.size() > 1;
    if (tried && (failures.places.size() >= most_tries || !somebody_else_works(failures))) {
      set_aside(index, failures);
    }
    if (nobody_works()) {
      for (std::size_t i = 0; paused_.size() > 1 && i < paused_.size(); ++i) give_another_chance(i);
      if (nobody_works()) stop(what_could_not_be_made());
    }
  }

  bool somebody_else_works(const Failures& failures) const {
    for (std::size_t i = 0; i < paused_.size(); ++i) {
      if (!pool_.places_[i].left && !paused_[i] && !failures.places.contains(i)) return true;
    }
    return false;
  }

  bool nobody_works() const { return !somebody_else_works({}); }

  void give_another_chance(std::size_t place) {
    if (!paused_[place]) return;
    paused_[place] = false;
    pool_.places_[place].suspected = true;
  }

  void leave(std::size_t place, const std::string& failure) {
    if (pool_.places_[place].left) return;
    pool_.places_[place].left = true;
    paused_[place] = false;
    say(pool_.places_[place].worker.name + " leaves the pool: " + failure);
  }

  bool has_hope(const Failures& failures) const {
    for (std::size_t i = 0; i < paused_.size(); ++i) {
      if (!pool_.places_[i].left && !failures.places.contains(i)) return true;
    }
    return false;
  }

  void set_aside(std::size_t index, Failures& failures) {
    if (failures.set_aside) return;
    failures.set_aside = true;
    ++set_aside_;
    ready_.erase(index);
    for (const std::size_t place : failures.places) give_another_chance(place);
    say(task_.ids[index] + " is set aside: " + failures.last);
  }

  void stop(Interruption interruption) {
    stopped_ = true;
    if (!interruption_) interruption_ = std::move(interruption);
    wake_all();
  }

  Interruption what_could_not_be_made() const {
    std::vector<std::string> ids;
    std::string last;
    for (const auto& [index, failures] : failures_) {
      if (ids.size() < named_candidates) ids.push_back(task_.ids[index]);
      if (last.empty() || failures.set_aside) last = failures.last;
    }
    if (failures_.size() > ids.size()) {
      ids.push_back(std::to_string(failures_.size() - ids.size()) + " more");
    }
    return {Interruption::Kind::failed,
            "the evaluation of " + (ids.empty() ? "candidates" : joined(ids)) +
                " could not be made: " + (last.empty() ? "no worker is left" : last)};
  }

  void say(const std::string& text) const {
    if (pool_.options_.say) pool_.options_.say(text);
  }

  EvaluationPool& pool_;
  const PoolTask& task_;
  std::mutex mutex_;                 ///< of everything below, with one exception
  std::mutex arrival_mutex_;         ///< held while a candidate is settled; taken before `mutex_`
  std::condition_variable more_;     ///< there is something for a worker that works
  std::condition_variable resumed_;  ///< a pause may be over
  std::condition_variable room_;     ///< there may be room for one more preparation
  std::set<std::size_t> ready_;      ///< prepared, or back from a worker that failed
  std::size_t next_ = 0;             ///< to prepare
  std::size_t preparing_ = 0;        ///< threads
  std::size_t in_preparation_ = 0;   ///< candidates
  std::size_t at_once_ = std::numeric_limits<std::size_t>::max();  ///< at most so many of these
  std::size_t evaluating_ = 0;                                     ///< workers
  std::size_t unsettled_;
  std::size_t set_aside_ = 0;
  std::vector<bool> paused_;  ///< by place
  std::map<std::size_t, Failures> failures_;
  int failures_in_a_row_ = 0;
  bool retried_ = false;  ///< what was set aside had its last try
  bool stopped_ = false;  ///< nothing new is begun
  bool closed_ = false;   ///< nothing more is settled; of `arrival_mutex_`
  std::optional<Interruption> interruption_;
};

std::optional<Interruption> EvaluationPool::run(const PoolTask& task,
                                                std::vector<std::size_t>& unsettled) {
  if (task.candidates.empty()) return std::nullopt;
  if (!places_.empty() && workers_left() == 0) {
    return Interruption{Interruption::Kind::failed, "every worker has left the pool"};
  }
  return Round(*this, task).run(unsettled);
}

}  // namespace rekernel

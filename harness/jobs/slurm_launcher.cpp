#include "harness/jobs/slurm_launcher.h"

#include <future>
#include <utility>

#include "harness/jobs/slurm_script.h"

namespace rekernel {

Result<std::unique_ptr<SlurmLauncher>> SlurmLauncher::open(JobFolder folder, SlurmJobOptions slurm,
                                                           JobOptions options, SlurmTimes times) {
  std::unique_ptr<SlurmLauncher> launcher(
      new SlurmLauncher(std::move(folder), std::move(slurm), std::move(options), times));
  const std::string script =
      evaluation_script(launcher->folder_, launcher->options_.program, "trial");
  if (Result<Ok> good = launcher->slurm_.check(script); !good) return good.error();
  launcher->server_ =
      std::jthread([own = launcher.get()](const std::stop_token& stop) { own->serve(stop); });
  return launcher;
}

SlurmLauncher::SlurmLauncher(JobFolder folder, SlurmJobOptions slurm, JobOptions options,
                             SlurmTimes times)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      times_(times),
      slurm_(std::move(slurm), options_.environment, times.answer),
      probe_(folder_, slurm_, options_, times),
      tasks_(folder_, slurm_, options_, times, [this](const std::string& why) {
        const std::lock_guard lock(mutex_);
        trouble_ = why;
      }) {}

SlurmLauncher::~SlurmLauncher() {
  if (server_.joinable()) {
    server_.request_stop();
    server_.join();
  }
}

// ── For those who wait ─────────────────────────────────────────────────────────────────────────

Result<Ok> SlurmLauncher::check_nodes(std::chrono::milliseconds patience) {
  const Result<bool> seen = probe_.run(patience, [&](std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, time, [&] { return cancelling_; });
  });
  if (!seen) return seen.error();
  if (*seen) tasks_.note_proven();  // nobody waits yet, so the thread does not look at it
  return Ok{};
}

EvaluationReport SlurmLauncher::evaluate(const Candidate& candidate,
                                         const EvaluateOptions& options) {
  EvaluateOptions own = options;
  own.device = 0;  // of those that Slurm gives the job
  Result<std::string> key = folder_.put_request(candidate, own);
  if (!key) return not_evaluated(candidate, key.error().message);
  std::future<Result<EvaluationReport>> coming;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || cancelling_) {
      return not_evaluated(candidate, left_ ? left_at_deadline : "cancelled");
    }
    asked_.push_back({std::move(*key), candidate.name, SlurmTasks::Promise()});
    coming = asked_.back().promise.get_future();
  }
  Result<EvaluationReport> report = coming.get();
  return report ? std::move(*report) : not_evaluated(candidate, report.error().message);
}

bool SlurmLauncher::has_left() const {
  const std::lock_guard lock(mutex_);
  return left_;
}

std::optional<std::string> SlurmLauncher::trouble() const {
  const std::lock_guard lock(mutex_);
  if (left_) return left_at_deadline;
  if (cancelling_) return "interrupted: its jobs are cancelled";
  if (trouble_.empty()) return std::nullopt;
  return trouble_;
}

void SlurmLauncher::cancel() {
  std::unique_lock lock(mutex_);
  cancelling_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return closed_; });
}

// ── The thread ─────────────────────────────────────────────────────────────────────────────────

void SlurmLauncher::serve(const std::stop_token& stop) {
  bool cancelling = false;
  while (!stop.stop_requested() && !cancelling && !has_left()) {
    take_asked();
    tasks_.look();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, times_.look, [&] { return cancelling_; });
    cancelling = cancelling_;
    left_ = !cancelling && options_.is_over();
  }
  if (cancelling) tasks_.cancel_jobs(probe_.job());
  close();
}

void SlurmLauncher::take_asked() {
  std::vector<Asked> asked;
  {
    const std::lock_guard lock(mutex_);
    asked.swap(asked_);
  }
  for (Asked& one : asked) {
    tasks_.add(one.key, std::move(one.candidate), std::move(one.promise));
  }
}

/// Nobody waits any more, or will.
void SlurmLauncher::close() {
  const std::lock_guard lock(mutex_);
  const std::string why = left_ ? left_at_deadline : "cancelled";
  tasks_.end(why, left_);
  for (Asked& asked : asked_) asked.promise.set_value(Error{why});
  asked_.clear();
  closed_ = true;
  changed_.notify_all();
}

}  // namespace rekernel

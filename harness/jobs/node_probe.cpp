#include "harness/jobs/node_probe.h"

#include <algorithm>

#include "harness/base/files.h"
#include "harness/jobs/slurm_script.h"

namespace rekernel {

/// What was asked when the nodes saw the folder.
std::string NodeProbe::word() const {
  const SlurmJobOptions& asked = slurm_.options();
  return sha256_hex(options_.program + "\n" + asked.partition + "\n" + asked.constraint);
}

Result<bool> NodeProbe::run(std::chrono::milliseconds patience, const Wait& wait) {
  if (folder_.is_seen(word())) return true;
  SlurmJobOptions short_job = slurm_.options();
  short_job.time = "1";
  const std::string name = "rekernel-probe-" + folder_.token();
  const Result<std::string> job =
      slurm_.submit(short_job, name, 1, {}, probe_script(folder_, options_.program, word()));
  const std::string unknown =
      "whether the nodes see " + folder_.path().string() + " is not known yet";
  if (!job) {
    if (refusal_of(job.error().message) == SlurmRefusal::permanent) {
      return Error{slurm_.refusal_text(job.error().message)};
    }
    say(unknown + ", since Slurm accepts no jobs now: " + job.error().message);
    return false;
  }
  set_job(*job);
  say("a one-minute job checks whether the nodes see " + folder_.path().string() +
      ": waiting for it at most " + seconds_text(patience) + " (--probe 0 skips it)");
  const Result<std::optional<std::string>> why = watch(name, patience, wait);
  if (!why) return why.error();
  if (*why) say(unknown + ": " + **why + "; the first candidates will tell");
  return !*why;
}

/// Nothing once its word is there; else why it may still come.
Result<std::optional<std::string>> NodeProbe::watch(const std::string& name,
                                                    std::chrono::milliseconds patience,
                                                    const Wait& wait) {
  Watch watch;
  watch.start = Clock::now();
  watch.next_query = watch.start + std::max(times_.look, times_.query / 4);
  watch.task.job = job();
  while (!folder_.is_seen(word())) {
    if (is_over_without_word(watch)) {
      set_job("");
      const std::string why =
          what_ended(watch.task, slurm_.options(), folder_.path().string(), options_.program);
      if (watch.task.state == "COMPLETED" || is_no_place_for_jobs(watch.task)) {
        return Error{"--launcher slurm: " + why};
      }
      return std::optional(why);
    }
    if (!watch.over_since && (Clock::now() - watch.start >= patience || options_.is_over())) {
      (void)slurm_.cancel({job()});
      set_job("");
      return std::optional<std::string>("its job is still in the queue");
    }
    if (!watch.over_since && Clock::now() >= watch.next_query) query(name, watch);
    if (!wait(times_.look)) return Error{"interrupted"};
  }
  set_job("");
  return std::optional<std::string>();
}

/// Whether a word would have come by now.
bool NodeProbe::is_over_without_word(const Watch& watch) const {
  const auto arrival = watch.task.state == "COMPLETED" ? times_.arrival : 2 * times_.look;
  return watch.over_since && Clock::now() - *watch.over_since >= arrival;
}

void NodeProbe::query(const std::string& name, Watch& watch) const {
  const Clock::time_point now = Clock::now();
  watch.next_query = now + std::max(times_.look, times_.query / 4);
  const auto listed = slurm_.list({name});
  if (!listed) return;
  for (const SlurmTask& one : *listed) {
    if (one.job == watch.task.job) watch.task = one;
  }
  if (listed->empty() || is_over(watch.task)) watch.over_since = now;
}

std::string NodeProbe::job() const {
  const std::lock_guard lock(mutex_);
  return job_;
}

void NodeProbe::set_job(const std::string& job) {
  const std::lock_guard lock(mutex_);
  job_ = job;
}

void NodeProbe::say(const std::string& text) const {
  if (options_.say) options_.say(text);
}

}  // namespace rekernel

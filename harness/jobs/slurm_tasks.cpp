#include "harness/jobs/slurm_tasks.h"

#include <algorithm>
#include <tuple>

#include "harness/base/text.h"
#include "harness/jobs/slurm_script.h"

namespace rekernel {

SlurmTasks::SlurmTasks(const JobFolder& folder, const SlurmClient& slurm, const JobOptions& options,
                       const SlurmTimes& times, std::function<void(const std::string&)> trouble)
    : folder_(folder),
      slurm_(slurm),
      options_(options),
      times_(times),
      trouble_(std::move(trouble)),
      batches_(folder),
      pace_(times.pause, times.longest_pause) {}

void SlurmTasks::add(const std::string& key, std::string candidate, Promise promise) {
  const auto [task, is_new] = tasks_.try_emplace(key);
  task->second.waiting.push_back(std::move(promise));
  if (!is_new) return;
  task->second.candidate = std::move(candidate);
  const auto adopted = adopted_.find(key);
  if (!known_ || adopted == adopted_.end()) {
    waiting_.insert(key);
  } else {
    std::tie(task->second.batch, task->second.index) = adopted->second;
    adopted_.erase(adopted);
  }
}

void SlurmTasks::look() {
  collect_results();
  const bool asks = !tasks_.empty() && Clock::now() >= next_query_;
  if (asks && (!known_ || waiting_.size() < tasks_.size())) query();
  if (!known_) return;
  give_up_waiting();
  submit();
}

void SlurmTasks::end(const std::string& why, bool jobs_go_on) {
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    // The manifest stays, by which the next one finds its jobs.
    if (jobs_go_on) task->second.batch = nullptr;
    fail(task++, why);
  }
}

void SlurmTasks::cancel_jobs(const std::string& besides) {
  std::vector<std::string> unknown, jobs;
  for (const SlurmBatch& batch : batches_) {
    if (batch.job.empty()) unknown.push_back(batch.name);
  }
  if (!unknown.empty()) {
    if (const auto listed = slurm_.list(unknown)) note_states(*listed);
  }
  for (const SlurmBatch& batch : batches_) {
    if (!batch.job.empty()) jobs.push_back(batch.job);
  }
  if (!besides.empty()) jobs.push_back(besides);
  if (jobs.empty()) return;
  say("cancelling " + counted(jobs.size(), "job") + " (scancel) …");
  if (const Result<Ok> cancelled = slurm_.cancel(jobs); !cancelled) {
    say("scancel: " + cancelled.error().message);
  }
}

// ── Results ────────────────────────────────────────────────────────────────────────────────────

void SlurmTasks::collect_results() {
  if (tasks_.empty()) return;
  const auto is_due = [](const auto& task) { return task.second.over_since.has_value(); };
  if (std::any_of(tasks_.begin(), tasks_.end(), is_due)) folder_.renew_results();
  for (const std::string& key : folder_.results()) {
    const auto task = tasks_.find(key);
    if (task == tasks_.end()) continue;
    const Result<JobResult> result = folder_.read_result(key);
    if (result) {
      take_result(task, *result);
    } else {
      folder_.remove_result(key);
      try_again(task, result.error().message);
    }
  }
}

void SlurmTasks::take_result(Tasks::iterator task, const JobResult& result) {
  const std::string node = "node " + result.node + ": ";
  if (task->second.was_suspended) {
    folder_.remove_result(task->first);
    return submit_again(task,
                        node +
                            "the job was suspended (SUSPENDED), so its result does not count; "
                            "submitted again, not counted as a try");
  }
  const auto refusal = folder_.refusal(result, options_.target, options_.mixed_gpus);
  if (!refusal && result.report.failure.empty()) {
    proven_ = true;
    nodes_.note_success(result.node);
    return finish(task, result.report);
  }
  folder_.remove_result(task->first);
  const std::string why = refusal ? *refusal : node + result.report.failure;
  if (refusal || nodes_.note_failure(result.node)) exclude(result.node, why);
  try_again(task, why);
}

// ── What Slurm knows ───────────────────────────────────────────────────────────────────────────

void SlurmTasks::query() {
  next_query_ = Clock::now() + times_.query;
  if (!known_) adopt();
  std::vector<SlurmTask> listed;
  if (!batches_.empty()) {
    Result<std::vector<SlurmTask>> tasks = slurm_.list(batches_.names());
    if (!tasks) {
      if (!std::exchange(silent_, true)) {
        say("Slurm does not say how the jobs are; they go on: " + tasks.error().message +
            "; asked again every " + seconds_text(times_.query));
      }
      return;
    }
    if (std::exchange(silent_, false)) say("Slurm answers again");
    listed = std::move(*tasks);
  }
  if (!known_) settle_adopted(listed);
  known_ = true;
  note_states(listed);
}

/// Batches of an earlier run, before their states are known.
void SlurmTasks::adopt() {
  if (!batches_.empty()) return;  // read before, by a query that failed
  batches_.read_manifests();
  for (SlurmBatch& batch : batches_) {
    for (std::size_t i = 0; i < batch.keys.size(); ++i) adopted_[batch.keys[i]] = {&batch, i};
  }
}

/// Waits for those tasks of an earlier run that still go on.
void SlurmTasks::settle_adopted(const std::vector<SlurmTask>& listed) {
  std::set<std::pair<std::string, std::size_t>> going_on;
  for (const SlurmTask& task : listed) {
    if (!is_over(task)) going_on.insert({task.name, task.index});
  }
  for (auto adopted = adopted_.begin(); adopted != adopted_.end();) {
    const auto& [batch, index] = adopted->second;
    const bool goes_on = going_on.contains({batch->name, index});
    const auto task = tasks_.find(adopted->first);
    if (goes_on) ++batch->open;
    if (goes_on && task != tasks_.end()) {
      task->second.batch = batch;
      task->second.index = index;
      waiting_.erase(adopted->first);
    }
    adopted = goes_on && task == tasks_.end() ? std::next(adopted) : adopted_.erase(adopted);
  }
}

void SlurmTasks::note_states(const std::vector<SlurmTask>& listed) {
  std::map<std::pair<std::string, std::size_t>, const SlurmTask*> by_place;
  std::map<std::string, std::string> jobs;
  for (const SlurmTask& task : listed) {
    by_place[{task.name, task.index}] = &task;
    jobs[task.name] = task.job;
  }
  for (SlurmBatch& batch : batches_) {
    if (batch.job.empty() && jobs.contains(batch.name)) batch.job = jobs[batch.name];
  }
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    const auto current = task++;
    const SlurmBatch* batch = current->second.batch;
    if (!batch) continue;
    const auto found = by_place.find({batch->name, current->second.index});
    if (found == by_place.end()) {
      SlurmTask unknown;
      unknown.job = batch->job;
      note_end(current, unknown);
    } else if (is_over(*found->second)) {
      note_end(current, *found->second);
    } else {
      note_going_on(current->second, *found->second);
    }
  }
  batches_.remove_closed();
}

void SlurmTasks::note_going_on(Task& task, const SlurmTask& listed) {
  task.over_since.reset();
  if (listed.restarts > std::exchange(task.restarts, listed.restarts)) {
    say(task.candidate + ": Slurm ended job " + listed.job +
        " before its time and requeued it (REQUEUED), as it does when a job is pre-empted or its "
        "node is lost: waiting for it");
  }
  // It stands still while its deadlines and its clock go on.
  if (listed.state == "SUSPENDED") task.was_suspended = true;
  const bool waits = listed.state == "PENDING" && listed.reason != "None";
  if (waits && told_.insert(listed.reason).second) {
    say("jobs wait in Slurm's queue: " + listed.reason);
  }
}

void SlurmTasks::note_end(Tasks::iterator task, const SlurmTask& ended) {
  Task& own = task->second;
  if (own.batch->job.empty()) {  // sbatch gave no answer, and the job is not there
    detach(own);
    waiting_.insert(task->first);
    return;
  }
  if (!own.over_since) own.over_since = Clock::now();
  own.ended = ended;
}

/// Results of jobs that are over, where they should have arrived by now.
void SlurmTasks::give_up_waiting() {
  std::string hopeless;
  std::optional<std::set<std::string>> logs;  // as they are at this look
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    const auto current = task++;
    Task& own = current->second;
    if (!own.over_since) continue;
    if (!logs) logs = folder_.logs();
    if (left_word_of_preemption(*logs, own.batch->name, own.index)) own.ended.state = "PREEMPTED";
    const std::string& state = own.ended.state;
    const bool may_have_one = state.empty() || state == "COMPLETED";
    const auto patience = may_have_one ? times_.arrival : 2 * times_.look;
    if (Clock::now() - *own.over_since < patience) continue;
    const std::string why =
        what_ended(own.ended, slurm_.options(), folder_.path().string(), options_.program);
    if (is_no_place_for_jobs(own.ended)) {
      exclude(own.ended.node, why);
      if (!proven_ && nodes_.excluded().size() > 1) hopeless = why;
    }
    if (state == "PREEMPTED") {  // no fault of the job
      submit_again(current, why + "; submitted again, not counted as a try");
    } else {
      try_again(current, why);
    }
  }
  if (!hopeless.empty()) give_up(hopeless);
}

/// Nothing came of any node yet, and on several it could not.
void SlurmTasks::give_up(const std::string& why) {
  const std::string text =
      "no job can run on the nodes so far (" + joined(nodes_.excluded_names()) + "): " + why;
  trouble_(text);
  cancel_jobs("");
  end(text, false);
}

// ── Submission ─────────────────────────────────────────────────────────────────────────────────

void SlurmTasks::submit() {
  while (!waiting_.empty() && pace_.is_due(Clock::now())) {
    if (!submit_batch(std::min(waiting_.size(), pace_.most_tasks()))) return;
  }
}

/// Whether the next may be tried.
bool SlurmTasks::submit_batch(std::size_t count) {
  SlurmBatch& batch = batches_.add(
      {waiting_.begin(), std::next(waiting_.begin(), static_cast<std::ptrdiff_t>(count))});
  batch.open = count;
  for (std::size_t i = 0; i < count; ++i) {
    Task& task = tasks_.at(batch.keys[i]);
    task.batch = &batch;
    task.index = i;
    task.restarts = 0;
    task.was_suspended = false;
    task.over_since.reset();
    waiting_.erase(batch.keys[i]);
  }
  if (const Result<Ok> written = batches_.write_manifest(batch); !written) {
    take_back(batch);
    end_submission(written.error().message);
    return false;
  }
  Result<std::string> job =
      slurm_.submit(slurm_.options(), batch.name, count, nodes_.excluded_names(),
                    evaluation_script(folder_, options_.program, batch.name));
  if (!job) return note_refusal(job.error().message, batch);
  batch.job = std::move(*job);
  pace_.note_success();
  next_query_ = std::min(next_query_, Clock::now() + times_.query);
  return true;
}

/// Nothing of it was submitted.
void SlurmTasks::take_back(SlurmBatch& batch) {
  for (const std::string& key : batch.keys) {
    tasks_.at(key).batch = nullptr;
    waiting_.insert(key);
  }
  batches_.remove(batch);
}

bool SlurmTasks::note_refusal(const std::string& message, SlurmBatch& batch) {
  const std::size_t count = batch.keys.size();
  const SlurmRefusal refusal = refusal_of(message);
  if (refusal == SlurmRefusal::unreachable) {
    next_query_ = Clock::now();  // is it there?
  } else {
    take_back(batch);
  }
  const SubmissionPace::Next next = pace_.note_refusal(refusal, count, Clock::now());
  if (next.when == SubmissionPace::Next::When::at_once) return true;
  if (next.when == SubmissionPace::Next::When::never) {
    end_submission(message);
    return false;
  }
  say("Slurm accepts no jobs now: " + message + "; tried again in " + seconds_text(next.pause));
  return false;
}

void SlurmTasks::end_submission(const std::string& message) {
  std::string text = "Slurm accepts no more jobs: " + message;
  for (const auto& [node, why] : nodes_.excluded()) {
    text += "; without node " + node + " (" + why + ")";
  }
  trouble_(text);
  const std::set<std::string> all = std::exchange(waiting_, {});
  for (const std::string& key : all) fail(tasks_.find(key), text);
}

// ── Ends ───────────────────────────────────────────────────────────────────────────────────────

void SlurmTasks::finish(Tasks::iterator task, const EvaluationReport& report) {
  detach(task->second);
  waiting_.erase(task->first);
  folder_.remove_request(task->first);
  for (Promise& promise : task->second.waiting) promise.set_value(report);
  tasks_.erase(task);
}

void SlurmTasks::fail(Tasks::iterator task, const std::string& why) {
  detach(task->second);
  waiting_.erase(task->first);
  for (Promise& promise : task->second.waiting) promise.set_value(Error{why});
  tasks_.erase(task);
}

void SlurmTasks::try_again(Tasks::iterator task, const std::string& why) {
  Task& own = task->second;
  if (++own.tries >= options_.tries) {
    return fail(task, "no result of " + counted(static_cast<std::size_t>(own.tries), "job") +
                          ", of the last since: " + why);
  }
  submit_again(task, why + "; submitted again (" + std::to_string(own.tries + 1) + " of " +
                         std::to_string(options_.tries) + ")");
}

void SlurmTasks::submit_again(Tasks::iterator task, const std::string& why) {
  Task& own = task->second;
  detach(own);
  own.over_since.reset();
  say(own.candidate + ": " + why);
  waiting_.insert(task->first);
}

void SlurmTasks::detach(Task& task) {
  if (!task.batch) return;
  SlurmBatch& batch = *std::exchange(task.batch, nullptr);
  if (--batch.open == 0) batches_.remove(batch);
}

void SlurmTasks::exclude(const std::string& node, const std::string& why) {
  if (nodes_.exclude(node, why)) say("node " + node + " gets no more jobs: " + why);
}

void SlurmTasks::say(const std::string& text) const {
  if (options_.say) options_.say(text);
}

}  // namespace rekernel

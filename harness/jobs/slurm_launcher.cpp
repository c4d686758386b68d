#include "harness/jobs/slurm_launcher.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/process/tool.h"

namespace rekernel {

namespace {

/// Failures of one node, without a success between them, behind which it gets no more jobs.
constexpr int most_strikes = 2;
constexpr std::size_t most_tasks_together = 100;
/// Of jobs like those that Slurm took before.
constexpr int most_refusals = 4;
/// What a job adds to its log's name where it is pre-empted.
constexpr const char* preempted_mark = ".preempted";

/// One a line, the lines numbered as the tasks are.
std::string manifest(const std::vector<std::string>& keys) { return joined(keys, "\n") + "\n"; }

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

Result<std::unique_ptr<SlurmLauncher>> SlurmLauncher::open(JobFolder folder, SlurmJobOptions slurm,
                                                           JobOptions options, SlurmTimes times) {
  std::unique_ptr<SlurmLauncher> launcher(
      new SlurmLauncher(std::move(folder), std::move(slurm), std::move(options), times));
  for (const char* tool : {"sbatch", "squeue", "scancel"}) {
    if (Result<Ok> runs = launcher->check_tool(tool); !runs) return runs.error();
  }
  ToolCommand trial;
  trial.arguments = sbatch_arguments(launcher->slurm_, "rekernel-trial", 1, {});
  trial.arguments.insert(trial.arguments.begin() + 1, "--test-only");
  trial.input = launcher->job_script("trial");
  trial.environment = launcher->options_.environment;
  trial.deadline = times.answer;
  const Result<ToolOutcome> outcome = run_tool(trial);
  if (!outcome) return outcome.error();
  if (!outcome->good() && refusal_of(outcome->last_words) != SlurmRefusal::full) {
    return Error{launcher->refusal_text(outcome->last_words)};
  }
  const Result<std::string> listed = launcher->ask_slurm(squeue_arguments({"rekernel-trial"}));
  const auto tasks = listed ? parse_squeue(*listed) : listed.error();
  if (!tasks) return Error{"--launcher slurm: squeue: " + tasks.error().message};
  launcher->server_ =
      std::jthread([own = launcher.get()](const std::stop_token& stop) { own->serve(stop); });
  return launcher;
}

SlurmLauncher::SlurmLauncher(JobFolder folder, SlurmJobOptions slurm, JobOptions options,
                             SlurmTimes times)
    : folder_(std::move(folder)),
      slurm_(std::move(slurm)),
      options_(std::move(options)),
      times_(times),
      largest_array_(most_tasks_together),
      largest_batch_(most_tasks_together),
      pause_(times.pause) {}

SlurmLauncher::~SlurmLauncher() {
  if (server_.joinable()) {
    server_.request_stop();
    server_.join();
  }
}

Result<Ok> SlurmLauncher::check_tool(const char* name) const {
  ToolCommand command;
  command.arguments = {name, "--version"};
  command.environment = options_.environment;
  command.deadline = times_.answer;
  const Result<ToolOutcome> outcome = run_tool(command);
  if (!outcome) return outcome.error();
  if (outcome->good()) return Ok{};
  const std::string what = outcome->exit_status == no_such_program
                               ? std::string("no ") + name + " in the folders of PATH"
                               : std::string(name) + " does not run: " + outcome->last_words;
  return Error{"--launcher slurm: " + what +
               ": expected Slurm's commands, as a login node has them"};
}

/// That Slurm will never take such jobs, and what was asked of it.
std::string SlurmLauncher::refusal_text(const std::string& message) const {
  std::string asked = "--time " + slurm_.time;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) asked += std::string(", --") + option + " " + value;
  };
  add("partition", slurm_.partition);
  add("account", slurm_.account);
  add("constraint", slurm_.constraint);
  for (const std::string& flag : slurm_.flags) asked += ", " + flag;
  return "--launcher slurm: Slurm takes no such job: " + message + " (one GPU, " +
         one_line(asked, 256) + ")";
}

// ── Before anything is evaluated ───────────────────────────────────────────────────────────────

/// What was asked when the nodes saw the folder.
std::string SlurmLauncher::node_word() const {
  return sha256_hex(options_.program + "\n" + slurm_.partition + "\n" + slurm_.constraint);
}

Result<Ok> SlurmLauncher::check_nodes(std::chrono::milliseconds patience) {
  if (proven_ = folder_.is_seen(node_word()); proven_) return Ok{};
  SlurmJobOptions short_job = slurm_;
  short_job.time = "1";
  const std::string name = "rekernel-probe-" + folder_.token();
  const Result<std::string> answer =
      ask_slurm(sbatch_arguments(short_job, name, 1, {}), probe_script());
  if (!answer) {
    if (refusal_of(answer.error().message) == SlurmRefusal::permanent) {
      return Error{refusal_text(answer.error().message)};
    }
    say("whether the nodes see " + folder_.path().string() +
        " is not known yet, since Slurm takes no job now: " + answer.error().message);
    return Ok{};
  }
  {
    const std::lock_guard lock(mutex_);
    probe_ = answer->substr(0, answer->find_first_of(";\n"));
  }
  say("a job of a minute looks whether the nodes see " + folder_.path().string() +
      ": waiting for it " + seconds_text(patience) + " at most (--probe 0 leaves it out)");
  const Result<std::optional<std::string>> unknown = watch_probe(name, patience);
  if (!unknown) return unknown.error();
  proven_ = !*unknown;  // nobody waits yet, so the thread does not look at it
  if (*unknown) {
    say("whether the nodes see " + folder_.path().string() + " is not known yet: " + **unknown +
        "; the first candidates will tell");
  }
  return Ok{};
}

/// Nothing once its word is there; else why it may still come.
Result<std::optional<std::string>> SlurmLauncher::watch_probe(const std::string& name,
                                                              std::chrono::milliseconds patience) {
  const Clock::time_point start = Clock::now();
  const auto query = std::max(times_.look, times_.query / 4);
  Clock::time_point next_query = start + query;
  std::optional<Clock::time_point> over_since;
  SlurmTask task;
  task.job = probe_;
  while (!folder_.is_seen(node_word())) {
    const Clock::time_point now = Clock::now();
    if (over_since &&
        now - *over_since >= (task.state == "COMPLETED" ? times_.arrival : 2 * times_.look)) {
      const std::lock_guard lock(mutex_);
      probe_.clear();
      const std::string why = what_ended(task, slurm_, folder_.path().string(), options_.program);
      if (task.state == "COMPLETED" || is_no_place_for_jobs(task))
        return Error{"--launcher slurm: " + why};
      return std::optional(why);
    }
    if (!over_since && (now - start >= patience || options_.is_over())) {
      (void)ask_slurm({"scancel", "--quiet", probe_});
      const std::lock_guard lock(mutex_);
      probe_.clear();
      return std::optional<std::string>("its job is still in the queue");
    }
    if (!over_since && now >= next_query) {
      next_query = now + query;
      const Result<std::string> output = ask_slurm(squeue_arguments({name}));
      const auto listed = output ? parse_squeue(*output) : output.error();
      for (const SlurmTask& one : listed ? *listed : std::vector<SlurmTask>()) {
        if (one.job == probe_) task = one;
      }
      if (listed && (listed->empty() || is_over(task))) over_since = now;
    }
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, times_.look, [&] { return cancelling_; }))
      return Error{"interrupted"};
  }
  const std::lock_guard lock(mutex_);
  probe_.clear();
  return std::optional<std::string>();
}

/// It runs the program too: one that finds no library there would fail for every candidate.
std::string SlurmLauncher::probe_script() const {
  const std::string seen = shell_quoted(folder_.seen().string());
  return script_begin() + "\"$program\" --help >/dev/null 2>&1 || exit " +
         std::to_string(no_program) + "\n" + "echo " + node_word() + " >" + seen +
         ".$SLURM_JOB_ID && mv " + seen + ".$SLURM_JOB_ID " + seen + " || exit " +
         std::to_string(no_writing) + "\n";
}

// ── For those who wait ─────────────────────────────────────────────────────────────────────────

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
    asked_.push_back({std::move(*key), candidate.name, Promise()});
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
    collect_results();
    const bool asks = !tasks_.empty() && Clock::now() >= next_query_;
    if (asks && (!known_ || waiting_.size() < tasks_.size())) query();
    if (known_) {
      give_up_waiting();
      submit();
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, times_.look, [&] { return cancelling_; });
    cancelling = cancelling_;
    left_ = !cancelling && options_.is_over();
  }
  if (cancelling) cancel_all();
  const std::lock_guard lock(mutex_);
  const std::string why = left_ ? left_at_deadline : "cancelled";
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    if (left_) task->second.batch = nullptr;  // whose manifest stays, for the next to find its jobs
    fail(task++, why);
  }
  for (Asked& asked : asked_) asked.promise.set_value(Error{why});
  asked_.clear();
  closed_ = true;
  changed_.notify_all();
}

void SlurmLauncher::take_asked() {
  std::vector<Asked> asked;
  {
    const std::lock_guard lock(mutex_);
    asked.swap(asked_);
  }
  for (Asked& one : asked) {
    const auto [task, is_new] = tasks_.try_emplace(one.key);
    task->second.waiting.push_back(std::move(one.promise));
    if (!is_new) continue;
    task->second.candidate = std::move(one.candidate);
    const auto adopted = adopted_.find(one.key);
    if (!known_ || adopted == adopted_.end()) {
      waiting_.insert(one.key);
    } else {
      std::tie(task->second.batch, task->second.index) = adopted->second;
      adopted_.erase(adopted);
    }
  }
}

void SlurmLauncher::collect_results() {
  if (tasks_.empty()) return;
  const auto is_due = [](const auto& task) { return task.second.over_since.has_value(); };
  if (std::any_of(tasks_.begin(), tasks_.end(), is_due)) folder_.renew_results();
  for (const std::string& key : folder_.results()) {
    const auto task = tasks_.find(key);
    if (task == tasks_.end()) continue;
    Result<JobResult> result = folder_.read_result(key);
    if (!result) {
      folder_.remove_result(key);
      try_again(task, result.error().message);
      continue;
    }
    const std::string node = "node " + result->node + ": ";
    if (task->second.was_suspended) {
      folder_.remove_result(key);
      submit_again(task, node +
                             "the job was stopped meanwhile (SUSPENDED), so that its result is not "
                             "taken; submitted again, which is not counted");
      continue;
    }
    const auto refusal = folder_.refusal(*result, options_.target, options_.mixed_gpus);
    if (refusal || !result->report.failure.empty()) {
      folder_.remove_result(key);
      const std::string why = refusal ? *refusal : node + result->report.failure;
      if (refusal || ++strikes_[result->node] >= most_strikes) exclude(result->node, why);
      try_again(task, why);
    } else {
      proven_ = true;
      strikes_.erase(result->node);
      finish(task, result->report);
    }
  }
}

// ── What Slurm knows ───────────────────────────────────────────────────────────────────────────

Result<std::string> SlurmLauncher::ask_slurm(const std::vector<std::string>& arguments,
                                             const std::string& input) const {
  ToolCommand command;
  command.arguments = arguments;
  command.input = input;
  command.environment = options_.environment;
  command.deadline = times_.answer;
  Result<ToolOutcome> outcome = run_tool(command);
  if (!outcome) return outcome.error();
  if (!outcome->good()) return Error{outcome->last_words};
  return std::move(outcome->output);
}

void SlurmLauncher::query() {
  next_query_ = Clock::now() + times_.query;
  if (!known_) adopt();
  std::vector<std::string> names;
  for (const Batch& batch : batches_) names.push_back(batch.name);
  std::vector<SlurmTask> listed;
  if (!names.empty()) {
    const Result<std::string> output = ask_slurm(squeue_arguments(names));
    Result<std::vector<SlurmTask>> tasks = output ? parse_squeue(*output) : output.error();
    if (!tasks) {
      if (!std::exchange(silent_, true)) {
        say("Slurm does not tell what became of the jobs, which go on: " + tasks.error().message +
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
void SlurmLauncher::adopt() {
  if (!batches_.empty()) return;  // read before, by a query that failed
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder_.batch(""), failed), end; !failed && at != end;
       at.increment(failed)) {
    const Result<std::string> text = read_file(at->path());
    if (!text) continue;
    Batch& batch = batches_.emplace_back();
    batch.name = at->path().filename().string();
    batch.keys = lines_in(*text);
    for (std::size_t i = 0; i < batch.keys.size(); ++i) adopted_[batch.keys[i]] = {&batch, i};
  }
}

/// Of an earlier run's tasks, those that still go on are waited for.
void SlurmLauncher::settle_adopted(const std::vector<SlurmTask>& listed) {
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

void SlurmLauncher::note_states(const std::vector<SlurmTask>& listed) {
  std::map<std::pair<std::string, std::size_t>, const SlurmTask*> by_place;
  std::map<std::string, std::string> jobs;
  for (const SlurmTask& task : listed) {
    by_place[{task.name, task.index}] = &task;
    jobs[task.name] = task.job;
  }
  for (Batch& batch : batches_) {
    if (batch.job.empty() && jobs.contains(batch.name)) batch.job = jobs[batch.name];
  }
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    const auto current = task++;
    if (!current->second.batch) continue;
    const auto found = by_place.find({current->second.batch->name, current->second.index});
    if (found == by_place.end()) {
      SlurmTask unknown;
      unknown.job = current->second.batch->job;
      note_end(current, unknown);
    } else if (is_over(*found->second)) {
      note_end(current, *found->second);
    } else {
      current->second.over_since.reset();
      note_restarts(current->second, *found->second);
      // It stands still while its deadlines and its clock go on.
      if (found->second->state == "SUSPENDED") current->second.was_suspended = true;
      const std::string& reason = found->second->reason;
      if (found->second->state == "PENDING" && reason != "None" && told_.insert(reason).second) {
        say("jobs wait in Slurm's queue: " + reason);
      }
    }
  }
  batches_.remove_if([&](const Batch& batch) {
    if (batch.open > 0) return false;
    std::error_code ignored;
    std::filesystem::remove(folder_.batch(batch.name), ignored);
    return true;
  });
}

void SlurmLauncher::note_restarts(Task& task, const SlurmTask& listed) {
  if (listed.restarts <= std::exchange(task.restarts, listed.restarts)) return;
  say(task.candidate + ": Slurm ended job " + listed.job +
      " before its time and put it back into its queue (REQUEUED), as it does where a job is "
      "pre-empted or its node is lost: waiting for it");
}

void SlurmLauncher::note_end(Tasks::iterator task, const SlurmTask& ended) {
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
void SlurmLauncher::give_up_waiting() {
  std::string hopeless;
  std::optional<std::set<std::string>> logs;  // as they are at this look
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    const auto current = task++;
    Task& own = current->second;
    if (!own.over_since) continue;
    if (!logs) logs = folder_.logs();
    if (was_preempted(own, *logs)) own.ended.state = "PREEMPTED";
    const std::string& state = own.ended.state;
    const bool may_have_one = state.empty() || state == "COMPLETED";
    const auto patience = may_have_one ? times_.arrival : 2 * times_.look;
    if (Clock::now() - *own.over_since < patience) continue;
    const std::string why =
        what_ended(own.ended, slurm_, folder_.path().string(), options_.program);
    if (is_no_place_for_jobs(own.ended)) {
      exclude(own.ended.node, why);
      if (!proven_ && excluded_.size() > 1) hopeless = why;
    }
    if (state == "PREEMPTED") {  // no fault of the job
      submit_again(current, why + "; submitted again, which is not counted");
    } else {
      try_again(current, why);
    }
  }
  if (!hopeless.empty()) give_up(hopeless);
}

/// Nothing came of any node yet, and on several it could not.
void SlurmLauncher::give_up(const std::string& why) {
  std::string nodes;
  for (const auto& [node, reason] : excluded_) nodes += (nodes.empty() ? "" : ", ") + node;
  const std::string text = "no job can run on the nodes so far (" + nodes + "): " + why;
  {
    const std::lock_guard lock(mutex_);
    trouble_ = text;
  }
  cancel_all();
  for (auto task = tasks_.begin(); task != tasks_.end();) fail(task++, text);
}

// ── Submission ─────────────────────────────────────────────────────────────────────────────────

void SlurmLauncher::submit() {
  while (!waiting_.empty() && Clock::now() >= next_submission_) {
    if (!submit_batch(std::min(waiting_.size(), largest_batch_))) return;
  }
}

/// Whether the next may be tried.
bool SlurmLauncher::submit_batch(std::size_t count) {
  Batch& batch = batches_.emplace_back();
  batch.keys.assign(waiting_.begin(),
                    std::next(waiting_.begin(), static_cast<std::ptrdiff_t>(count)));
  // The name is how the jobs are found again, by whoever reads the manifest.
  batch.name =
      "rekernel-" +
      sha256_hex(folder_.token() + manifest(batch.keys) +
                 std::to_string(std::chrono::system_clock::now().time_since_epoch().count()))
          .substr(0, 16);
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
  std::vector<std::string> nodes;
  for (const auto& [node, why] : excluded_) nodes.push_back(node);
  Result<Ok> written = write_file_atomically(folder_.batch(batch.name), manifest(batch.keys));
  if (!written) {
    take_back(batch);
    end_submission(written.error().message);
    return false;
  }
  const Result<std::string> answer =
      ask_slurm(sbatch_arguments(slurm_, batch.name, count, nodes), job_script(batch.name));
  if (answer) {
    // "123" or "123;cluster"
    batch.job = answer->substr(0, answer->find_first_of(";\n"));
    largest_batch_ = std::min(2 * largest_batch_, largest_array_);
    pause_ = times_.pause;
    refusals_ = 0;
    next_query_ = std::min(next_query_, Clock::now() + times_.query);
    return true;
  }
  return note_refusal(answer.error().message, batch);
}

/// Nothing of it was submitted.
void SlurmLauncher::take_back(Batch& batch) {
  for (const std::string& key : batch.keys) {
    tasks_.at(key).batch = nullptr;
    waiting_.insert(key);
  }
  std::error_code ignored;
  std::filesystem::remove(folder_.batch(batch.name), ignored);
  batches_.pop_back();
}

bool SlurmLauncher::note_refusal(const std::string& message, Batch& batch) {
  const std::size_t count = batch.keys.size();
  const SlurmRefusal refusal = refusal_of(message);
  if (refusal == SlurmRefusal::unreachable) {
    next_query_ = Clock::now();  // is it there?
  } else {
    take_back(batch);
  }
  if (refusal == SlurmRefusal::array && count > 1) {
    largest_array_ = largest_batch_ = count / 2;
    return true;
  }
  if (refusal == SlurmRefusal::full) largest_batch_ = std::max<std::size_t>(1, count / 2);
  // Such jobs were welcome once: a controller that has just begun knows no node yet.
  const bool final = refusal == SlurmRefusal::permanent || refusal == SlurmRefusal::array;
  if (final && ++refusals_ >= most_refusals) {
    end_submission(message);
    return false;
  }
  say("Slurm takes no job now: " + message + "; tried again in " + seconds_text(pause_));
  next_submission_ = Clock::now() + pause_;
  pause_ = std::min(2 * pause_, times_.longest_pause);
  return false;
}

void SlurmLauncher::end_submission(const std::string& message) {
  std::string text = "Slurm takes no more jobs: " + message;
  for (const auto& [node, why] : excluded_) text += "; without node " + node + " (" + why + ")";
  {
    const std::lock_guard lock(mutex_);
    trouble_ = text;
  }
  const std::set<std::string> all = std::exchange(waiting_, {});
  for (const std::string& key : all) fail(tasks_.find(key), text);
}

/// What runs on the node is copied there by Slurm: only from here on is the folder needed.
std::string SlurmLauncher::script_begin() const {
  return "#!/bin/sh\n"
         "folder=" +
         shell_quoted(folder_.path().string()) +
         "\n"
         "program=" +
         shell_quoted(options_.program) +
         "\n"
         // A node may remember for half a minute that there is no such name on a network file
         // system, until it lists the folder that holds it.
         "look() {\n"
         "  case $1 in /*/*) look \"${1%/*}\" ;; /*) ls / >/dev/null 2>&1 ;; esac\n"
         "  ls \"$1\" >/dev/null 2>&1\n"
         "}\n"
         "sees() { [ \"$(cat \"$folder/token\" 2>/dev/null)\" = " +
         folder_.token() +
         " ]; }\n"
         "sees || { look \"$folder\"; sees; } || exit " +
         std::to_string(no_shared_folder) +
         "\n"
         "[ -x \"$program\" ] || { look \"$program\"; [ -x \"$program\" ]; } || exit " +
         std::to_string(no_program) +
         "\n"
         "[ -w \"$folder/results\" ] || exit " +
         std::to_string(no_writing) + "\n";
}

std::string SlurmLauncher::job_script(const std::string& batch) const {
  return script_begin() +
         "task=${SLURM_ARRAY_TASK_ID:-0}\n"
         "log=$folder/logs/" +
         batch +
         ".$task\n"
         "key=$(sed -n \"$((task + 1))p\" \"$folder/batches/" +
         batch +
         "\")\n"
         "job=$SLURM_JOB_ID\n"
         "[ -z \"$SLURM_ARRAY_TASK_ID\" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\n"
         "end_early() {\n"
         "  trap '' TERM\n"
         "  kill \"$running\"\n"
         "  scontrol show job -o \"$job\" | grep -q 'PreemptTime=[0-9]' && : >\"$log" +
         preempted_mark +
         "\"\n"
         "  exit 143\n"
         "}\n"
         "rm -f \"$log" +
         preempted_mark +
         "\"\n"
         "\"$program\" evaluate-job \"$folder\" \"$key\" >\"$log\" 2>&1 &\n"
         "running=$!\n"
         "trap end_early TERM\n"
         "wait \"$running\" || exit\n"
         "rm -f \"$log\"\n";
}

/// Whether its job left word that Slurm pre-empted it. Slurm tells so itself for a while, but not
/// where it forgets jobs soon.
bool SlurmLauncher::was_preempted(const Task& task, const std::set<std::string>& logs) {
  return logs.contains(task.batch->name + "." + std::to_string(task.index) + preempted_mark);
}

// ── Ends ───────────────────────────────────────────────────────────────────────────────────────

void SlurmLauncher::finish(Tasks::iterator task, const EvaluationReport& report) {
  detach(task->second);
  waiting_.erase(task->first);
  folder_.remove_request(task->first);
  for (Promise& promise : task->second.waiting) promise.set_value(report);
  tasks_.erase(task);
}

void SlurmLauncher::fail(Tasks::iterator task, const std::string& why) {
  detach(task->second);
  waiting_.erase(task->first);
  for (Promise& promise : task->second.waiting) promise.set_value(Error{why});
  tasks_.erase(task);
}

void SlurmLauncher::try_again(Tasks::iterator task, const std::string& why) {
  Task& own = task->second;
  if (++own.tries >= options_.tries) {
    return fail(task, "no result of " + counted(static_cast<std::size_t>(own.tries), "job") +
                          ", of the last since: " + why);
  }
  submit_again(task, why + "; submitted again (" + std::to_string(own.tries + 1) + " of " +
                         std::to_string(options_.tries) + ")");
}

void SlurmLauncher::submit_again(Tasks::iterator task, const std::string& why) {
  Task& own = task->second;
  detach(own);
  own.over_since.reset();
  say(own.candidate + ": " + why);
  waiting_.insert(task->first);
}

void SlurmLauncher::detach(Task& task) {
  if (!task.batch) return;
  Batch* const batch = std::exchange(task.batch, nullptr);
  if (--batch->open > 0) return;
  std::error_code ignored;
  std::filesystem::remove(folder_.batch(batch->name), ignored);
  batches_.remove_if([&](const Batch& one) { return &one == batch; });
}

void SlurmLauncher::exclude(const std::string& node, const std::string& why) {
  if (node.empty() || !excluded_.emplace(node, why).second) return;
  say("node " + node + " gets no more jobs: " + why);
}

void SlurmLauncher::cancel_all() {
  std::vector<std::string> unknown, arguments = {"scancel", "--quiet"};
  for (const Batch& batch : batches_) {
    if (batch.job.empty()) unknown.push_back(batch.name);
  }
  if (!unknown.empty()) {
    const Result<std::string> output = ask_slurm(squeue_arguments(unknown));
    if (const auto listed = output ? parse_squeue(*output) : output.error()) {
      note_states(*listed);
    }
  }
  for (const Batch& batch : batches_) {
    if (!batch.job.empty()) arguments.push_back(batch.job);
  }
  {
    const std::lock_guard lock(mutex_);
    if (!probe_.empty()) arguments.push_back(probe_);
  }
  if (arguments.size() == 2) return;
  say("cancelling " + counted(arguments.size() - 2, "job") + " (scancel) …");
  const Result<std::string> answer = ask_slurm(arguments);
  if (!answer) say("scancel: " + answer.error().message);
}

void SlurmLauncher::say(const std::string& text) const {
  if (options_.say) options_.say(text);
}

}  // namespace rekernel

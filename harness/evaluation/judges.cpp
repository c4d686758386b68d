#include "harness/evaluation/judges.h"

#include <fcntl.h>

#include "harness/base/cache.h"
#include "harness/evaluation/referee.h"
#include "harness/evaluation/rig.h"
#include "harness/gpu/shared_memory.h"
#include "harness/problems/catalog.h"

namespace rekernel {

Result<RunnerProcess> RunnerProcess::start(const GpuIdentity& gpu, std::chrono::seconds lifetime) {
  auto sockets = Channel::sockets();
  if (!sockets) return sockets.error();
  Result<FileDescriptor> words = WordPage::create();
  if (!words) return words.error();
  const int copy = ::fcntl(words->get(), F_DUPFD_CLOEXEC, 0);
  auto process =
      ServedProcess::start("runner-worker", gpu, {sockets->second.release(), copy}, lifetime);
  if (!process) return process.error();
  return RunnerProcess{std::move(*process), std::move(sockets->first), std::move(*words)};
}

Result<RunnerProcess> RunnerProcess::start_opening(const GpuIdentity& gpu,
                                                   std::chrono::seconds lifetime) {
  Result<RunnerProcess> started = start(gpu, lifetime);
  if (!started) return started;
  Channel channel(std::move(started->socket));
  // A process that is gone shows when its answer is read.
  (void)channel.send({"open"}).ok();
  started->socket = channel.release();
  return started;
}

Result<std::unique_ptr<Judges>> Judges::start(const GpuIdentity& gpu) {
  auto sockets = Channel::sockets();
  if (!sockets) return sockets.error();
  auto referee =
      ServedProcess::start("referee-worker", gpu, {sockets->second.release()}, unlimited_lifetime);
  if (!referee) return referee.error();
  return std::unique_ptr<Judges>(
      new Judges(gpu, Channel(std::move(sockets->first)), std::move(*referee)));
}

void Judges::stop() {
  referee_->stop();
  if (libraries_) libraries_->process->stop();
  if (truth_) truth_->stop();
}

Result<FileDescriptor> Judges::start_truth_process() {
  auto sockets = Channel::sockets();
  if (!sockets) return sockets.error();
  auto process = ServedProcess::start("truth-worker", gpu_, {sockets->second.release()},
                                      unlimited_lifetime, python_additions());
  if (!process) return process.error();
  truth_ = std::move(*process);
  return std::move(sockets->first);
}

Result<Ok> Judges::start_libraries() {
  Result<RunnerProcess> started = RunnerProcess::start(gpu_, unlimited_lifetime);
  if (!started) return started.error();
  libraries_ = std::move(*started);
  return Ok{};
}

/// Hands processes over to the referee.
Result<Ok> Judges::send(const Fields& fields, std::span<RunnerProcess* const> handed,
                        std::span<const int> others) {
  std::vector<int> descriptors;
  for (const RunnerProcess* runner : handed) {
    descriptors.push_back(runner->socket.get());
    descriptors.push_back(runner->words.get());
  }
  descriptors.insert(descriptors.end(), others.begin(), others.end());
  const Result<Ok> sent = channel_.send(fields, descriptors);
  for (RunnerProcess* runner : handed) {
    // One that the referee hangs up on must see nobody else there.
    runner->socket.close();
    runner->words.close();
  }
  return sent;
}

void Judges::prepare() {
  if (libraries_ || !start_libraries()) return;
  RunnerProcess* const handed[] = {&*libraries_};
  // A referee that is gone shows at the evaluation.
  (void)send({"prepare"}, handed, {}).ok();
}

Result<Ok> Judges::ask(const Case& one) {
  std::vector<RunnerProcess*> handed = one.runners;
  const Problem& problem = *find_problem(one.candidate.problem);
  Lent lent;
  lent.candidate = !one.runners.empty();
  lent.candidate_stays = one.runners_stay;
  lent.libraries = !libraries_ && needs_libraries(one.options, problem);
  if (lent.libraries) {
    if (Result<Ok> started = start_libraries(); !started) return started.error();
    handed.push_back(&*libraries_);
  }
  std::vector<int> others;
  FileDescriptor truth;
  lent.truth_process = !truth_ && needs_truth_program(one.options, problem);
  if (lent.truth_process) {
    Result<FileDescriptor> started = start_truth_process();
    if (!started) return started.error();
    truth = std::move(*started);
    others.push_back(truth.get());
  }
  others.insert(others.end(), one.externals.begin(), one.externals.end());
  return send(referee_request(one.candidate, one.options, lent), handed, others);
}

/// Finds out how a referee that does not go on ended.
void Judges::bury(Answer& answer) {
  channel_ = Channel();
  answer.death = answer.late ? referee_->kill() : referee_->end();
}

Judges::Answer Judges::evaluate(const Case& one) {
  Answer answer;
  const auto dead = [&](bool late) {
    answer.late = late;
    bury(answer);
    return std::move(answer);
  };
  if (Result<Ok> asked = ask(one); !asked) {
    if (channel_.is_hung_up()) return dead(false);
    bury(answer);
    answer.report = Result<EvaluationReport>(asked.error());
    return answer;
  }
  auto deadline = Channel::Clock::now() + one.options.startup_deadline;
  while (true) {
    const Result<Message> message = channel_.receive(deadline);
    if (!message) return dead(Channel::Clock::now() >= deadline);
    const Fields& fields = message->fields;
    const std::string word = fields.empty() ? "" : fields[0];
    if (word == "code") {
      if (one.compiled.wait_until(deadline) != std::future_status::ready) {
        answer.compiled = false;
        return dead(true);
      }
      // A referee that is gone shows at the next receive.
      (void)channel_.send({to_fields(one.compiled.get())}).ok();
    } else if (word == "started") {
      answer.found_out.assign(fields.begin() + 1, fields.end());
      for (const std::string& entries : answer.found_out) {
        remember_all(entries, TimedChoices::dropped);
      }
      answer.began = true;
      deadline = Channel::Clock::now() + one.options.whole_deadline();
    } else {
      const bool whole = word == "report" && fields.size() == 3;
      answer.report = whole ? report_from_json(fields[1])
                            : Result<EvaluationReport>(Error{"the referee's words make no sense"});
      if (!whole || fields[2] != referee_goes_on) channel_ = Channel();
      return answer;
    }
  }
}

}  // namespace rekernel

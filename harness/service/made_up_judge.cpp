#include "harness/service/made_up_judge.h"

#include <boost/json.hpp>
#include <stdexcept>
#include <thread>

#include "harness/base/files.h"
#include "harness/service/answer.h"

namespace rekernel::service {

namespace {

constexpr const char* made_up = "made-up";

std::string code_of(const Task& task) { return task.source + task.ptx + task.cubin + task.reply; }

/// The word that the code asks for; empty if none.
std::string asked_word(const Task& task) {
  constexpr std::string_view mark = "// made-up: ";
  const std::string code = code_of(task);
  const std::size_t at = code.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + mark.size();
  return code.substr(begin, code.find_first_of(" \r\n", begin) - begin);
}

/// The same for the same code: from 0.1 ms to a little over 1 ms.
std::int64_t made_up_ns(const Task& task) {
  constexpr std::int64_t shortest = 100'000, range = 1 << 20;
  const std::string digest = sha256_hex(code_of(task));
  return shortest +
         static_cast<std::int64_t>(std::stoull(digest.substr(0, 8), nullptr, 16) % range);
}

Evaluation made_up_evaluation(const Task& task, Status status) {
  Evaluation evaluation;
  evaluation.problem = task.problem;
  evaluation.kernel = task.name;
  evaluation.sha256 = sha256_hex(code_of(task));
  evaluation.status = status;
  if (status != Status::passed) evaluation.message = "made up";
  if (status != Status::passed || task.tier != Tier::timed) return evaluation;
  const std::int64_t median = made_up_ns(task);
  constexpr std::int64_t reference_ns = 500'000, speed_of_light_ns = 90'000;
  evaluation.timing = Timing{{median}, median, median, median};
  evaluation.speed_of_light_ns = speed_of_light_ns;
  ReferenceResult reference;
  reference.id = made_up;
  reference.timing = Timing{{reference_ns}, reference_ns, reference_ns, reference_ns};
  const double percent = 100.0 * static_cast<double>(reference_ns) / static_cast<double>(median);
  reference.percent_of_reference = Percent{percent, percent, percent};
  evaluation.references.push_back(std::move(reference));
  for (const BadgeDescription& badge : badge_table) evaluation.badges.set(badge.badge);
  return evaluation;
}

Outcome verdict(const Task& task, Status status) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::answer;
  boost::json::object json =
      verdict_json(made_up_evaluation(task, status), task, {made_up, made_up, "", true});
  outcome.answer = {Answer::Kind::verdict, made_up, made_up, boost::json::serialize(json)};
  return outcome;
}

bool is_the_compilers(Status status) {
  return status == Status::invalid_plan || status == Status::compile_failed;
}

}  // namespace

MadeUpJudge::MadeUpJudge(const Options& options)
    : options_(options), chance_(options.seed), lost_until_(options.devices) {}

JudgeBackend::Identity MadeUpJudge::identity(const Task&) const { return {made_up, made_up}; }

Outcome MadeUpJudge::compile(const Task& task) {
  if (options_.compile_time.count() > 0) std::this_thread::sleep_for(options_.compile_time);
  const std::optional<Status> asked = status_from_string(asked_word(task));
  if (asked && is_the_compilers(*asked)) return verdict(task, *asked);
  if (task.tier == Tier::compile) return verdict(task, Status::passed);
  Outcome outcome;
  outcome.kind = Outcome::Kind::goes_on;
  return outcome;
}

Outcome MadeUpJudge::failure(int device, bool lost) {
  if (lost) {
    const std::lock_guard lock(mutex_);
    lost_until_.at(static_cast<std::size_t>(device)) = Clock::now() + options_.lost_for;
  }
  Outcome outcome;
  outcome.kind = lost ? Outcome::Kind::device_lost : Outcome::Kind::machine_failure;
  outcome.code = lost ? "device_lost" : "machine_failure";
  outcome.message = "made up";
  return outcome;
}

Outcome MadeUpJudge::judge(const Task& task, int device) {
  const std::string word = asked_word(task);
  constexpr int slowness = 10;
  const auto time = word == "slow" ? slowness * options_.judge_time : options_.judge_time;
  if (time.count() > 0) std::this_thread::sleep_for(time);
  if (word == "exception") throw std::runtime_error("made up");
  if (word == "machine_failure" || word == "device_lost") {
    return failure(device, word == "device_lost");
  }
  double drawn = 1;
  {
    const std::lock_guard lock(mutex_);
    drawn = std::uniform_real_distribution<double>(0, 1)(chance_);
  }
  if (drawn < options_.failure_share) return failure(device, drawn < options_.failure_share / 2);
  return verdict(task, status_from_string(word).value_or(Status::passed));
}

bool MadeUpJudge::answers(int device) {
  const std::lock_guard lock(mutex_);
  return Clock::now() >= lost_until_.at(static_cast<std::size_t>(device));
}

}  // namespace rekernel::service

#include "harness/service/launched_judge.h"

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>

#include "harness/base/harness_digest.h"
#include "harness/compile/compile_isolated.h"
#include "harness/gpu/identity.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/records/signature.h"

namespace rekernel::service {

namespace {

/// Of tier `correct`: as many as a whole verdict judges at the least.
constexpr int judged_inputs = 12;

bool is_among(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::find(ids, id) != ids.end();
}

Outcome failure(const std::string& code, const std::string& message) {
  Outcome outcome;
  outcome.code = code;
  outcome.message = message;
  return outcome;
}

std::vector<std::string> references_of(const Task& task) {
  if (task.tier != Tier::timed) return {};
  return task.all_references ? library_reference_ids(task.problem)
                             : headline_reference_ids(task.problem);
}

EvaluateOptions options_of(const Task& task, int device) {
  EvaluateOptions options;
  options.device = device;
  if (task.tier == Tier::correct) {
    options.mode = EvaluateOptions::Mode::errors;
    options.samples = judged_inputs;
    options.stress = false;  // they decide on a badge, and it gives none
  }
  if (task.tier == Tier::timed) options.samples = task.samples;
  options.other_sizes = task.other_sizes;
  options.references = references_of(task);
  return options;
}

Evaluation rejected(const Task& task, Status status, const std::string& message) {
  Evaluation evaluation;
  evaluation.problem = task.problem;
  evaluation.kernel = task.name;
  evaluation.status = status;
  evaluation.message = message;
  return evaluation;
}

/// What a signature is of: lines that a person can read and a program can compare.
std::string statement_of(const Evaluation& evaluation, const Task& task, const JudgedBy& by) {
  std::string text = "rekernel verdict 1\nproblem " + task.problem + "\ncandidate " +
                     evaluation.sha256 + "\ntier " + to_string(task.tier) + "\nstatus " +
                     to_string(evaluation.status) + "\n";
  for (const std::string& badge : evaluation.earned_badges().names())
    text += "badge " + badge + "\n";
  if (evaluation.timing) {
    text += "median_ns " + std::to_string(evaluation.timing->median_ns) + "\n";
    if (const ReferenceResult* headline = evaluation.headline()) {
      text += "reference " + headline->id + " " + std::to_string(headline->timing.median_ns) + "\n";
    }
  }
  return text + "judge " + by.judge + "\ndevice " + by.device + "\n";
}

}  // namespace

LaunchedJudge::LaunchedJudge(Options options, const Compiler& compiler)
    : options_(std::move(options)), compiler_(compiler) {}

Result<std::unique_ptr<LaunchedJudge>> LaunchedJudge::make(Options options) {
  Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  return std::unique_ptr<LaunchedJudge>(new LaunchedJudge(std::move(options), *compiler));
}

std::string LaunchedJudge::target_of(const Task& task) const {
  return task.target.empty() ? options_.target : task.target;
}

std::string LaunchedJudge::device_name() const {
  if (!options_.device_name.empty()) return options_.device_name;
  const std::lock_guard lock(mutex_);
  return seen_device_;
}

/// PyTorch eager, where no library computes what the project's problem asks for.
std::vector<std::string> LaunchedJudge::pytorch_references_of(const Task& task) const {
  const bool needed = task.tier == Tier::timed && !options_.with_pytorch.empty() &&
                      task.definition.empty() && headline_reference_ids(task.problem).empty();
  const Problem* problem = needed ? find_problem(task.problem) : nullptr;
  if (!problem) return {};
  return {pytorch_ids(*problem, false).front()};
}

std::string LaunchedJudge::judge_of(const Task& task) const {
  std::vector<std::string> references = references_of(task);
  std::ranges::copy(pytorch_references_of(task), std::back_inserter(references));
  return harness_digest(digest_of_problem(task.problem), references);
}

JudgeBackend::Identity LaunchedJudge::identity(const Task& task) const {
  return {judge_of(task), task.tier == Tier::compile ? target_of(task) : device_name()};
}

/// Nothing where nobody asked, or where there is nothing to profile.
std::optional<ProfileRecord> LaunchedJudge::profile(const Task& task, const Candidate& candidate,
                                                    const Evaluation& evaluation,
                                                    int device) const {
  if (!task.profile || evaluation.status != Status::passed) return std::nullopt;
  ProfileRecord none;
  if (options_.profilers.empty()) {
    none.unavailable = "this service does not profile: `rekernel serve --profiles` does";
    return none;
  }
  const Result<ProfileRecord> found =
      options_.profilers.at(static_cast<std::size_t>(device))(candidate);
  if (found) return *found;
  none.unavailable = found.error().message;
  return none;
}

Outcome LaunchedJudge::verdict(const Task& task, const Evaluation& evaluation,
                               const std::string& device, const std::string& toolchain,
                               const std::vector<LaunchUse>& launches,
                               const std::optional<ProfileRecord>& profile) const {
  const JudgedBy by{judge_of(task), device, toolchain};
  boost::json::object json = verdict_json(evaluation, task, by, launches);
  if (profile && profile->unavailable.empty()) {
    json["profile"] = {{"tool", profile->tool}, {"text", profile->text}};
  } else if (profile) {
    json["profile"] = {{"unavailable", profile->unavailable}};
  }
  if (!options_.signing_key.empty()) {
    const std::string statement = statement_of(evaluation, task, by);
    const Result<std::string> signature = sign(statement, options_.signing_key);
    if (!signature) return failure("cannot_sign", signature.error().message);
    json["statement"] = statement;
    json["signature"] = *signature;
  }
  Outcome outcome;
  outcome.kind = Outcome::Kind::answer;
  outcome.answer = {Answer::Kind::verdict, by.judge, device, boost::json::serialize(json)};
  return outcome;
}

Outcome LaunchedJudge::compile(const Task& task) {
  const Result<Candidate> candidate = candidate_of(task);
  std::string target = target_of(task);
  if (!candidate) {
    return verdict(task, rejected(task, Status::invalid_plan, candidate.error().message),
                   task.tier == Tier::compile ? target : device_name(), options_.toolchain);
  }
  if (target.empty()) target = targets_of(candidate->arch).front();
  const ComputeCapability capability = *capability_of(target);
  Outcome goes_on;
  goes_on.kind = Outcome::Kind::goes_on;
  if (!runs_on(candidate->arch, capability.major, capability.minor)) {
    if (task.tier != Tier::compile) return goes_on;  // the device's own judge says so
    return verdict(
        task,
        rejected(task, Status::invalid_plan,
                 std::string("arch: ") + to_string(candidate->arch) + " does not run on " + target),
        target, options_.toolchain);
  }
  const Result<CompileOutcome> compiled =
      compile_candidate(compiler_, *candidate, target, candidate->name);
  if (!compiled) return failure("compiler_failed", compiled.error().message);
  if (compiled->program && task.tier != Tier::compile) return goes_on;
  Evaluation evaluation = rejected(task, compiled->status, compiled->message);
  evaluation.sha256 = candidate_sha256(*candidate);
  evaluation.target = target;
  if (compiled->program) {
    evaluation.status = Status::passed;
    evaluation.message.clear();
    evaluation.resources = launched_kernels(candidate->program, *compiled->program);
    evaluation.compile_log = compiled->program->log;
  }
  return verdict(task, evaluation, task.tier == Tier::compile ? target : device_name(),
                 options_.toolchain, launch_uses(*candidate, evaluation.resources, target));
}

Outcome LaunchedJudge::judge(const Task& task, int device) {
  const Result<Candidate> candidate = candidate_of(task);
  if (!candidate) {
    return verdict(task, rejected(task, Status::invalid_plan, candidate.error().message),
                   device_name(), options_.toolchain);
  }
  const int place = options_.places.at(static_cast<std::size_t>(device));
  EvaluateOptions evaluate = options_of(task, place);
  evaluate.external_references = pytorch_references_of(task);
  EvaluationLauncher* launcher = options_.launcher.get();
  if (task.tier == Tier::timed && !options_.with_pytorch.empty()) {
    const auto own = options_.with_pytorch.at(static_cast<std::size_t>(device))();
    if (!own) return failure("no_pytorch", own.error().message);
    launcher = *own;
  }
  const EvaluationReport report = launcher->evaluate(*candidate, evaluate);
  if (options_.settled) options_.settled(*candidate, evaluate);
  if (!report.failure.empty()) {
    Outcome outcome = failure("machine_failure", report.failure);
    if (!answers(device)) {
      outcome.kind = Outcome::Kind::device_lost;
      outcome.code = "device_lost";
    }
    return outcome;
  }
  // A percentage that was asked for and is lost is no verdict's.
  for (const ReferenceResult& one : report.evaluation.references) {
    if (one.unavailable.empty() || !is_among(evaluate.external_references, one.id)) continue;
    return failure("no_pytorch", one.id + ": " + one.unavailable);
  }
  const std::string name = report.device ? report.device->name : device_name();
  if (options_.device_name.empty()) {
    const std::lock_guard lock(mutex_);
    if (seen_device_.empty()) seen_device_ = name;
  }
  return verdict(task, report.evaluation, name,
                 report.toolchain.empty() ? options_.toolchain : report.toolchain,
                 launch_uses(*candidate, report.evaluation.resources, report.evaluation.target),
                 profile(task, *candidate, report.evaluation, device));
}

bool LaunchedJudge::answers(int device) {
  if (!options_.is_local) return true;
  return identify_gpu(options_.places.at(static_cast<std::size_t>(device))).ok();
}

}  // namespace rekernel::service

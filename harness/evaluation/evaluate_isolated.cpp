#include <fcntl.h>
#include <unistd.h>
#include <boost/json.hpp>

#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <limits>
#include <string>

#include "harness/base/cache.h"
#include "harness/base/files.h"
#include "harness/evaluation/evaluate.h"
#include "harness/process/isolate.h"
#include "harness/process/sandbox.h"
#include "harness/process/system_calls.h"
#include "ops/catalog.h"

namespace rekernel {

namespace {

constexpr const char* where_request = "evaluation request";
constexpr const char* where_report = "evaluation report";

boost::json::object to_json(const DeviceProperties& device) {
  return {{"name", device.name},
          {"uuid", device.uuid},
          {"major", device.major},
          {"minor", device.minor},
          {"multiprocessors", device.multiprocessors},
          {"l2_bytes", device.l2_bytes},
          {"memory_bytes", device.memory_bytes},
          {"shared_bytes_per_block", device.shared_bytes_per_block},
          {"clock_khz", device.clock_khz},
          {"driver_version", device.driver_version}};
}

DeviceProperties read_device(JsonReader reader) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  DeviceProperties device;
  device.name = reader.required("name").string();
  device.uuid = reader.required("uuid").string();
  device.major = static_cast<int>(reader.required("major").integer(0, 1000));
  device.minor = static_cast<int>(reader.required("minor").integer(0, 1000));
  device.multiprocessors = static_cast<int>(reader.required("multiprocessors").integer(0, 1 << 20));
  device.l2_bytes = reader.required("l2_bytes").integer(0, most);
  device.memory_bytes = reader.required("memory_bytes").integer(0, most);
  device.shared_bytes_per_block = reader.required("shared_bytes_per_block").integer(0, most);
  device.clock_khz = reader.required("clock_khz").integer(0, most);
  device.driver_version = static_cast<int>(reader.required("driver_version").integer(0, 1 << 30));
  return device;
}

boost::json::object to_json(const EvaluationReport& report) {
  boost::json::object json{{"failure", report.failure},
                           {"evaluation", rekernel::to_json(report.evaluation)},
                           {"copy_bytes_per_s", report.ceilings.copy_bytes_per_s},
                           {"fp16_flops_per_s", report.ceilings.fp16_flops_per_s}};
  boost::json::array noise;
  for (const NoiseRun& run : report.noise) noise.push_back(rekernel::to_json(run));
  json["noise"] = std::move(noise);
  if (report.device) json["device"] = to_json(*report.device);
  return json;
}

Result<EvaluationReport> report_from_json(const std::string& text) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  Result<boost::json::value> json = parse_json(text, where_report);
  if (!json) return json.error();
  JsonReader reader(where_report, *json);
  EvaluationReport report;
  report.failure = reader.required("failure").string();
  Result<Evaluation> evaluation = evaluation_from_json(reader.required("evaluation"));
  if (!evaluation) return evaluation.error();
  report.evaluation = std::move(*evaluation);
  report.ceilings.copy_bytes_per_s = reader.required("copy_bytes_per_s").integer(0, most);
  report.ceilings.fp16_flops_per_s = reader.required("fp16_flops_per_s").integer(0, most);
  for (JsonReader& run : reader.required("noise").array()) {
    report.noise.push_back(noise_run_from_json(run));
  }
  if (auto device = reader.optional("device")) report.device = read_device(*device);
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return report;
}

std::string request_text(const Candidate& candidate, const EvaluateOptions& options) {
  return boost::json::serialize(boost::json::object{{"options", to_json(options)},
                                                    {"plan", candidate_json(candidate)},
                                                    {"source", candidate.program.source}});
}

/// What a child that gave no report says of the candidate, or of the harness.
EvaluationReport report_of_dead_child(EvaluationReport report, const ChildOutcome& outcome) {
  Evaluation& evaluation = report.evaluation;
  const std::string words = outcome.last_words.empty() ? "" : ": " + outcome.last_words;
  switch (outcome.end) {
    case ChildOutcome::End::startup_deadline:
      evaluation.status = Status::timed_out;
      evaluation.message = "not ready to run by the start-up deadline" + words;
      break;
    case ChildOutcome::End::run_deadline:
      evaluation.status = Status::timed_out;
      evaluation.message = "not done by the run deadline" + words;
      break;
    case ChildOutcome::End::signalled:
      evaluation.status = Status::crashed;
      evaluation.message = std::string("the process died of ") + strsignal(outcome.code) + words;
      break;
    case ChildOutcome::End::result_too_long:
      evaluation.status = Status::crashed;
      evaluation.message = "the process wrote a report without end" + words;
      break;
    case ChildOutcome::End::exited:
      evaluation.status = Status::crashed;
      evaluation.message = "the process ended with status " + std::to_string(outcome.code) + words;
      break;
  }
  return report;
}

struct Request {
  EvaluateOptions options;
  Candidate candidate;
};

Result<Request> read_request(const std::string& text) {
  Result<boost::json::value> json = parse_json(text, where_request);
  if (!json) return json.error();
  JsonReader reader(where_request, *json);
  Result<EvaluateOptions> options = evaluate_options_from_json(reader.required("options"));
  if (!options) return options.error();
  const std::string plan = reader.required("plan").string();
  std::string source = reader.required("source").string();
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  Result<Candidate> candidate = parse_candidate(plan, std::move(source), where_request);
  if (!candidate) return candidate.error();
  return Request{std::move(*options), std::move(*candidate)};
}

}  // namespace

boost::json::object to_json(const EvaluateOptions& options) {
  boost::json::object json{
      {"references", boost::json::value_from(options.references)},
      {"external_references", boost::json::value_from(options.external_references)},
      {"device", options.device},
      {"samples", options.samples},
      {"stress", options.stress},
      {"once", options.once},
      {"timing", options.timing},
      {"check_seeds", options.check_seeds},
      {"noise_runs", options.noise_runs},
      {"noise_subject", options.noise_subject},
      {"startup_deadline_s", options.startup_deadline.count()},
      {"run_deadline_s", options.run_deadline.count()}};
  if (options.seed) json["seed"] = std::to_string(*options.seed);
  return json;
}

Result<EvaluateOptions> evaluate_options_from_json(JsonReader reader) {
  constexpr std::int64_t longest_deadline_s = 86400;
  EvaluateOptions options;
  options.references = reader.required("references").strings();
  options.external_references = reader.required("external_references").strings();
  options.device = static_cast<int>(reader.required("device").integer(0, 1024));
  options.samples = static_cast<int>(reader.required("samples").integer(1, 100000));
  options.stress = reader.required("stress").boolean();
  options.once = reader.required("once").boolean();
  options.timing = reader.required("timing").boolean();
  options.check_seeds = static_cast<int>(reader.required("check_seeds").integer(1, 1000));
  options.noise_runs = static_cast<int>(reader.required("noise_runs").integer(0, 10000));
  options.noise_subject = reader.required("noise_subject").string();
  options.startup_deadline =
      std::chrono::seconds(reader.required("startup_deadline_s").integer(1, longest_deadline_s));
  options.run_deadline =
      std::chrono::seconds(reader.required("run_deadline_s").integer(1, longest_deadline_s));
  if (auto seed = reader.optional("seed")) options.seed = std::stoull(seed->string());
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return options;
}

namespace {

/// The largest file that the driver or a library may write: the driver keeps code that it compiles
/// itself, and shares memory through files.
constexpr std::int64_t largest_file = std::int64_t{1} << 30;
constexpr int most_open_files = 4096;  // CUDA opens dozens for each GPU of the machine
/// Threads that may be busy all the time: CUDA's waits spin, and our own programs compile.
constexpr int busy_threads = 16;

/// The candidate's machine code for the device, from the cache or from a child.
Result<CompileOutcome> compile_for_device(const Candidate& candidate, int device) try {
  const Result<ComputeCapability> capability = compute_capability(device);
  if (!capability) return capability.error();
  if (!runs_on(candidate.arch, capability->major, capability->minor)) {
    return Error{"not compiled: the device cannot run it"};  // the evaluating child says so too
  }
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  return compile_isolated(*compiler, candidate.program,
                          problem_header(*find_problem(candidate.problem)),
                          Compiler::target_for_device(capability->major, capability->minor));
} catch (const std::exception& error) {
  return Error{error.what()};
}

/// The evaluating child's limits. Its address space is not one of them: CUDA reserves terabytes of
/// addresses. Nor are its private pages (RLIMIT_DATA): nothing says how many the driver may need.
ChildLimits evaluation_limits(const EvaluateOptions& options) {
  ChildLimits limits;
  limits.processor_time = busy_threads * (options.startup_deadline + options.run_deadline);
  limits.file_bytes = largest_file;
  limits.open_files = most_open_files;
  return limits;
}

Result<std::vector<std::unique_ptr<ExternalProcess>>> start_externals(
    const EvaluateOptions& options, const StartExternal& start) {
  std::vector<std::unique_ptr<ExternalProcess>> processes;
  for (std::size_t i = 0; i < options.external_references.size(); ++i) {
    if (!start) return Error{"no external references here"};
    Result<std::unique_ptr<ExternalProcess>> process = start();
    if (!process) return process.error();
    processes.push_back(std::move(*process));
  }
  return processes;
}

}  // namespace

EvaluationReport evaluate_isolated(const Candidate& candidate, const EvaluateOptions& options,
                                   const StartExternal& start_external) {
  EvaluationReport report;
  report.evaluation.problem = candidate.problem;
  report.evaluation.kernel = candidate.name;
  report.evaluation.sha256 = candidate_sha256(candidate);

  const std::shared_future<Result<CompileOutcome>> compiled =
      std::async(std::launch::async, compile_for_device, std::cref(candidate), options.device)
          .share();
  auto externals = start_externals(options, start_external);
  if (!externals) {
    report.failure = externals.error().message;
    return report;
  }
  ChildCommand command;
  command.arguments = {own_executable(), "evaluate-worker"};
  append_field(command.input, request_text(candidate, options));
  command.more_input = [compiled] {
    std::string bytes;
    append_field(bytes, to_fields(compiled.get()));
    return bytes;
  };
  command.limits = evaluation_limits(options);
  command.startup_deadline = options.startup_deadline;
  command.run_deadline = options.run_deadline;
  for (const auto& external : *externals) {
    for (const int descriptor : external->take_descriptors()) {
      command.inherited.push_back(descriptor);
    }
  }
  const Result<ChildOutcome> outcome = run_sandboxed(std::move(command), SandboxDevices::gpu);
  if (!outcome) {
    report.failure = outcome.error().message;
    return report;
  }
  remember_all(outcome->startup);
  // A report counts only from a child that ended well: one that dies while writing wrote no
  // verdict.
  if (outcome->end == ChildOutcome::End::exited && outcome->code == 0) {
    Result<EvaluationReport> received = report_from_json(outcome->result);
    if (received) return std::move(*received);
    report.failure = received.error().message;
    return report;
  }
  if (compiled.get() && !compiled.get()->program) {
    // The compiler's verdict stands, whatever became of the child that waited for it.
    report.evaluation.status = compiled.get()->status;
    report.evaluation.message = compiled.get()->message;
    return report;
  }
  return report_of_dead_child(std::move(report), *outcome);
}

int run_evaluation_worker(const ReferenceSource& references) {
  if (::fcntl(result_descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    return 2;  // started by hand: there is no pipe to report to
  }
  if (!sandbox_is_refused()) (void)lock_down().ok();
  keep_cache_entries_for_parent();
  EvaluationReport report;
  bool started = false;
  auto start = [&started] {
    // What was found out so far, none of the candidate's code has seen.
    if (!started) report_started(result_descriptor, new_cache_entries());
    started = true;
  };
  auto compiled = []() -> Result<CompileOutcome> {
    const Result<std::string> fields = read_field(STDIN_FILENO);
    if (!fields) return Error{"the candidate's machine code did not arrive"};
    return compile_outcome_from(*fields);
  };
  const Result<std::string> text = read_field(STDIN_FILENO);
  Result<Request> request = text ? read_request(*text) : Result<Request>(text.error());
  if (!request) {
    report.evaluation.status = Status::invalid_plan;
    report.evaluation.message = request.error().message;
  } else {
    try {
      report = evaluate_here(request->candidate, request->options, references, compiled, start);
    } catch (const std::exception& error) {
      report.failure = error.what();
    }
  }
  start();
  write_all(result_descriptor, boost::json::serialize(to_json(report)));
  // Past a device fault, CUDA's own destructors can hang or crash; everything is said.
  ::_exit(0);
}

}  // namespace rekernel

#include "harness/evaluation/referee.h"

#include <fcntl.h>
#include <unistd.h>

#include <exception>

#include "harness/base/cache.h"
#include "harness/base/fields.h"
#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/modes.h"
#include "harness/process/isolate.h"
#include "harness/process/sandbox.h"
#include "harness/process/system_calls.h"
#include "ops/catalog.h"

namespace rekernel {

namespace {

struct Request {
  EvaluateOptions options;
  bool with_repetition = false;
  bool with_libraries = false;
  Candidate candidate;
};

Result<Request> read_request(const std::string& text) {
  Result<RequestedEvaluation> read = read_evaluation_request(text, "evaluation request");
  if (!read) return read.error();
  const bool with_repetition = needs_repetition(read->options);
  const bool with_libraries =
      needs_libraries(read->options, *find_problem(read->candidate.problem));
  return Request{std::move(read->options), with_repetition, with_libraries,
                 std::move(read->candidate)};
}

/// Descriptors in the order in which the launcher lists them.
class Inherited {
 public:
  FileDescriptor next() { return FileDescriptor(next_++); }
  RunnerConnection runner() {
    FileDescriptor socket = next();
    return {std::move(socket), next()};
  }
  std::array<int, 2> external() {
    next_ += 2;
    return {next_ - 2, next_ - 1};
  }

 private:
  int next_ = first_inherited_descriptor;
};

Connections inherited_connections(const Request& request) {
  Inherited inherited;
  Connections connections;
  connections.candidate = inherited.runner();
  if (request.with_repetition) connections.repetition = inherited.runner();
  if (request.with_libraries) connections.libraries = inherited.runner();
  for (std::size_t i = 0; i < request.options.external_references.size(); ++i) {
    connections.externals.push_back(inherited.external());
  }
  return connections;
}

Result<CompileOutcome> read_compiled() {
  const Result<std::string> fields = read_field(STDIN_FILENO);
  if (!fields) return Error{"the candidate's machine code did not arrive"};
  return compile_outcome_from(*fields);
}

}  // namespace

std::string referee_request(const Candidate& candidate, const EvaluateOptions& options) {
  std::string field;
  append_field(field, evaluation_request(candidate, options));
  return field;
}

int run_referee_worker(const ReferenceSource& references) {
  if (::fcntl(result_descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    return 2;  // started by hand: there is no pipe to report to
  }
  if (!sandbox_is_refused()) (void)lock_down().ok();
  keep_cache_entries_for_parent();
  bool started = false;
  const auto start = [&started] {
    if (!started) report_started(result_descriptor, new_cache_entries());
    started = true;
  };
  const auto finish = [&start](const EvaluationReport& report) {
    start();
    write_all(result_descriptor, boost::json::serialize(to_json(report)));
    // CUDA's own destructors can hang; everything is said.
    ::_exit(0);
  };
  EvaluationReport report;
  const Result<std::string> text = read_field(STDIN_FILENO);
  Result<Request> request = text ? read_request(*text) : Result<Request>(text.error());
  if (!request) {
    report.evaluation.status = Status::invalid_plan;
    report.evaluation.message = request.error().message;
    finish(report);
  }
  const Occasion occasion{request->candidate,
                          *find_problem(request->candidate.problem),
                          request->options,
                          references,
                          read_compiled,
                          start,
                          finish};
  try {
    report = request->options.mode == EvaluateOptions::Mode::once
                 ? run_once(occasion)
                 : evaluate_with(occasion, inherited_connections(*request));
  } catch (const std::exception& error) {
    report.failure = error.what();
  }
  finish(report);
  return 0;
}

}  // namespace rekernel

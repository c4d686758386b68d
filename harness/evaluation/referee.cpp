#include "harness/evaluation/referee.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <exception>

#include "harness/base/cache.h"
#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/modes.h"
#include "harness/evaluation/served_process.h"
#include "harness/problems/catalog.h"
#include "harness/process/isolate.h"

namespace rekernel {

namespace {

using Mode = EvaluateOptions::Mode;

constexpr const char* lent_libraries = "libraries";
constexpr const char* lent_truth_process = "truth";
constexpr const char* lent_candidate = "candidate";
constexpr const char* candidate_stays = "stays";
constexpr std::size_t fields_of_request = 6;
/// Addresses that an evaluation took are never given back (DeviceMapping): there are enough of them
/// for so many evaluations many times over.
constexpr int most_evaluations = 500;

/// Descriptors in the order in which the launcher lists them.
class Handed {
 public:
  explicit Handed(std::vector<FileDescriptor> descriptors) : descriptors_(std::move(descriptors)) {}
  FileDescriptor next() { return std::move(descriptors_.at(next_++)); }
  PendingRunner runner() {
    FileDescriptor socket = next();
    return {Channel(std::move(socket)), next()};
  }
  std::array<FileDescriptor, 2> external() {
    FileDescriptor conversation = next();
    return {std::move(conversation), next()};
  }

 private:
  std::vector<FileDescriptor> descriptors_;
  std::size_t next_ = 0;
};

/// For a verdict, the ceiling needs the rate of the best library product.
std::vector<std::string> needed_references(const RequestedEvaluation& request,
                                           const ReferenceSource& source) {
  std::vector<std::string> ids = request.options.references;
  const bool needs_rate = request.options.mode == Mode::verdict &&
                          find_problem(request.candidate.problem)->matrix_products > 0;
  if (needs_rate) ids.push_back(source.matrix_rate_reference);
  return ids;
}

/// The processes that the referee keeps between evaluations.
struct KeptProcesses {
  PendingRunner libraries;
  Channel truth;
  std::vector<PendingRunner> candidate;  ///< none but between evaluations of the same one
};

Connections handed_connections(const RequestedEvaluation& request, const Lent& lent,
                               std::vector<FileDescriptor> descriptors, KeptProcesses& kept,
                               const ReferenceSource& source) {
  Handed handed(std::move(descriptors));
  Connections connections;
  connections.candidate = std::exchange(kept.candidate, {});
  connections.candidate_stays = lent.candidate_stays;
  if (lent.candidate) {
    connections.candidate.clear();
    while (connections.candidate.size() < candidate_processes(request.options)) {
      connections.candidate.push_back(handed.runner());
    }
  }
  if (lent.libraries) {
    kept.libraries = handed.runner();
    kept.libraries.open(needed_references(request, source));
  }
  if (lent.truth_process) kept.truth = Channel(handed.next());
  for (std::size_t i = 0; i < request.options.external_references.size(); ++i) {
    connections.externals.push_back(handed.external());
  }
  const Problem& problem = *find_problem(request.candidate.problem);
  if (needs_libraries(request.options, problem)) connections.libraries = &kept.libraries;
  if (needs_truth_program(request.options, problem)) connections.truth = &kept.truth;
  return connections;
}

/// The referee's side of the conversation with the launcher.
class Referee {
 public:
  Referee(Channel channel, const ReferenceSource& references)
      : channel_(std::move(channel)), references_(references) {}

  void serve() {
    for (int evaluation = 1; goes_on_; ++evaluation) {
      Result<Message> message = channel_.receive();
      if (!message) return;
      goes_on_ = evaluation < most_evaluations;
      if (message->fields == Fields{"prepare"}) {
        prepare(std::move(*message));
      } else {
        evaluate(std::move(*message));
      }
    }
  }

 private:
  void say(const Fields& fields) {
    // A launcher that is gone shows at the next receive.
    (void)channel_.send(fields).ok();
  }

  void prepare(Message message) {
    kept_.libraries = Handed(std::move(message.descriptors)).runner();
    kept_.libraries.open();
    // Why it cannot be opened, the evaluation will say.
    if (Result<Device> device = open_in_turn()) device_ = std::move(*device);
  }

  void evaluate(Message message) {
    const Fields& fields = message.fields;
    Result<RequestedEvaluation> request =
        fields.size() == fields_of_request && fields[0] == "evaluate"
            ? read_evaluation_request(fields[1], "evaluation request")
            : Result<RequestedEvaluation>(Error{"the launcher's words make no sense"});
    if (!request) {
      EvaluationReport report;
      report.evaluation.status = Status::invalid_plan;
      report.evaluation.message = request.error().message;
      return report_and_end(report);
    }
    reported_ = false;
    const bool once = request->options.mode == Mode::once;
    const Occasion occasion{request->candidate,
                            *request->problem,
                            request->options,
                            references_,
                            [this] { return ask_for_code(); },
                            [this](const std::string& entries) { start(entries); },
                            [this](const EvaluationReport& report) { finish(report); }};
    EvaluationReport report;
    try {
      if (once) {
        report = run_once(occasion);
      } else {
        // They open the device while this process does.
        Connections connections =
            handed_connections(*request,
                               {fields[2] == lent_libraries, fields[3] == lent_truth_process,
                                fields[4] == lent_candidate, fields[5] == candidate_stays},
                               std::move(message.descriptors), kept_, references_);
        if (!device_) device_ = or_setup_failure(open_in_turn());
        report = evaluate_with(occasion, *device_, connections);
        if (connections.candidate_stays && report.passed()) {
          kept_.candidate = std::move(connections.candidate);
        }
      }
    } catch (const std::exception& error) {
      report.failure = error.what();
      goes_on_ = false;
    }
    if (!reported_) report_and_end(report);
  }

  Result<CompileOutcome> ask_for_code() {
    say({"code"});
    const Result<Message> answer = channel_.receive();
    if (!answer || answer->fields.size() != 1) {
      return Error{"the candidate's machine code did not arrive"};
    }
    return compile_outcome_from(answer->fields[0]);
  }

  void start(const std::string& entries) { say({"started", new_cache_entries(), entries}); }

  /// While all of the rig still stands: the launcher need not wait until it is taken apart.
  void finish(const EvaluationReport& report) {
    reported_ = true;
    // What was late may still be on the device, and our stream waits for it.
    if (report.evaluation.status == Status::timed_out) goes_on_ = false;
    say({"report", boost::json::serialize(to_json(report)), goes_on_ ? referee_goes_on : ""});
  }

  /// After a failure, nobody knows what state CUDA is in.
  void report_and_end(const EvaluationReport& report) {
    goes_on_ = false;
    finish(report);
  }

  Channel channel_;
  const ReferenceSource& references_;
  std::optional<Device> device_;
  KeptProcesses kept_;
  bool goes_on_ = true;
  bool reported_ = false;
};

}  // namespace

Fields referee_request(const Candidate& candidate, const EvaluateOptions& options,
                       const Lent& lent) {
  return {"evaluate",
          evaluation_request(candidate, options),
          lent.libraries ? lent_libraries : "",
          lent.truth_process ? lent_truth_process : "",
          lent.candidate ? lent_candidate : "",
          lent.candidate_stays ? candidate_stays : ""};
}

int run_referee_worker(const ReferenceSource& references) {
  if (::fcntl(first_served_descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    return 2;  // started by hand: there is nobody to serve
  }
  settle_as_served_process();
  Referee(Channel(FileDescriptor(first_served_descriptor)), references).serve();
  // CUDA's own destructors can hang; everything is said.
  ::_exit(0);
}

}  // namespace rekernel

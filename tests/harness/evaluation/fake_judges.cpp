// The main function of launcher_tests, which start this program again: as a referee and as runners
// that need no GPU, and as the child that compiles.

#include "fake_judges.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <string_view>

#include "harness/base/fields.h"
#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/evaluation.h"
#include "harness/evaluation/referee.h"
#include "harness/evaluation/report.h"
#include "harness/evaluation/rig.h"
#include "harness/evaluation/served_process.h"
#include "harness/process/channel.h"

namespace rekernel::testing {
namespace {

/// What a runner says of itself; it ends then, since nobody holds the other end.
std::string process_of(FileDescriptor socket) {
  Channel channel(std::move(socket));
  (void)channel.send({"who"}).ok();
  const Result<Message> answer = channel.receive();
  return answer ? answer->fields.at(0) : "gone";
}

/// Serves by the protocol of referee.h: reports its process, how many evaluations it made, whether
/// it was prepared for them, and the candidate's processes, in place of a verdict. The errors of
/// what passes are the pairs of processes that came for candidates so far.
int judge() {
  Channel channel{FileDescriptor(first_served_descriptor)};
  std::string prepared = "unprepared";
  int pairs = 0;
  for (int evaluation = 1;; ++evaluation) {
    Result<Message> message = channel.receive();
    if (!message) return 0;
    if (message->fields == Fields{"prepare"}) {
      prepared = "prepared";
      --evaluation;
      continue;
    }
    const auto request = read_evaluation_request(message->fields.at(1), "request");
    if (!request) return 3;
    if (message->fields.at(4) == "candidate") ++pairs;
    const Behaviour behaviour = behaviour_of(request->options);
    if (behaviour == Behaviour::dies) return 5;
    if (behaviour == Behaviour::never_starts) ::pause();
    if (behaviour == Behaviour::talks_nonsense) (void)channel.send({"hello"}).ok();
    (void)channel.send({"code"}).ok();
    const Result<Message> code = channel.receive();
    if (!code || code->fields.size() != 1) return 4;
    (void)channel.send({"started", "", ""}).ok();
    if (behaviour == Behaviour::never_ends) ::pause();
    EvaluationReport report = blank_report(request->candidate);
    report.evaluation.status = Status::wrong_result;
    report.evaluation.message =
        std::to_string(::getpid()) + " " + std::to_string(evaluation) + " " + prepared;
    const std::size_t came =
        message->fields.at(4) == "candidate" ? candidate_processes(request->options) : 0;
    for (std::size_t i = 0; i < came; ++i) {
      report.evaluation.message += " " + process_of(std::move(message->descriptors.at(2 * i)));
    }
    const bool has_own_sizes = request->candidate.sizes.empty();
    if (behaviour == Behaviour::passes ||
        (behaviour == Behaviour::passes_at_own_sizes && has_own_sizes)) {
      report.evaluation.status = Status::passed;
      report.evaluation.message.clear();
      const std::int64_t columns = request->problem->attribute("columns");
      report.evaluation.errors.emplace();
      report.evaluation.errors->worst_tolerance_ratio = pairs;
      report.evaluation.timing = Timing{{columns}, columns, columns, columns};
    }
    const bool last = behaviour == Behaviour::ends;
    (void)channel
        .send({"report", boost::json::serialize(to_json(report)), last ? "" : referee_goes_on})
        .ok();
    if (last) return 0;
  }
}

/// Until nobody holds the other end.
int run() {
  Channel channel{FileDescriptor(first_served_descriptor)};
  while (const Result<Message> message = channel.receive()) {
    if (message->fields == Fields{"who"}) (void)channel.send({std::to_string(::getpid())}).ok();
  }
  return 0;
}

}  // namespace
}  // namespace rekernel::testing

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "compile-worker") return rekernel::run_compile_worker();
  if (mode == "referee-worker") ::_exit(rekernel::testing::judge());
  if (mode == "runner-worker") ::_exit(rekernel::testing::run());
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

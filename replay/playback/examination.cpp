#include "replay/playback/examination.h"

#include <boost/json.hpp>

#include "harness/base/json.h"
#include "harness/candidate/arch.h"
#include "harness/records/contradictions.h"
#include "replay/trajectory/outcome.h"

namespace rekernel {
namespace {

/// Numbers that are not whole have four digits in a trajectory.
constexpr double of_four_digits = 5e-4;

/// What decides about the speed of light; nothing where the header does not tell it all.
std::optional<DeviceProperties> properties_of(const DeviceFacts& facts) {
  if (facts.clock_khz == 0 || facts.memory_clock_khz == 0 || facts.memory_bus_bits == 0) {
    return std::nullopt;
  }
  const ComputeCapability capability = capability_of(facts.target).value_or(ComputeCapability{});
  DeviceProperties device;
  device.name = facts.name;
  device.major = capability.major;
  device.minor = capability.minor;
  device.multiprocessors = static_cast<int>(facts.multiprocessors);
  device.l2_bytes = facts.l2_bytes;
  device.clock_khz = facts.clock_khz;
  device.memory_clock_khz = facts.memory_clock_khz;
  device.memory_bus_bits = facts.memory_bus_bits;
  return device;
}

/// Another device than the search's is known only by what its evaluation says.
EvaluationContext context_of(const DeviceFacts& device, const std::string& measured_on) {
  EvaluationContext context;
  if (measured_on == device.name) context.device = properties_of(device);
  context.errors_rounding = of_four_digits;
  context.shares_rounding = of_four_digits;
  context.percent_rounding = of_four_digits;
  return context;
}

}  // namespace

void EvaluationExaminer::note(const CandidateReport& report, const std::string& what) {
  constexpr std::size_t longest = 800;
  found_.push_back("evaluation " + report.id + ": " + one_line(what, longest));
}

void EvaluationExaminer::examine(const CandidateReport& report) {
  if (!report.candidate) {
    if (report.outcome->status == Status::passed) {
      note(report, "status: passed, but its reply holds no candidate");
    }
    return;
  }
  const Result<Evaluation> evaluation = evaluation_from_record(*report.record, "evaluation");
  if (!evaluation) {
    // "evaluation: timing: unknown key …"
    note(report, evaluation.error().message.substr(std::string_view("evaluation: ").size()));
    return;
  }
  examine_identity(report, *evaluation);
  examine_device(report, *evaluation);
  for (const std::string& line :
       contradictions(*evaluation, context_of(header_.device, device_in(*report.record)))) {
    note(report, line);
  }
}

/// What it is an evaluation of. The search itself compares the content with the reply's.
void EvaluationExaminer::examine_identity(const CandidateReport& report,
                                          const Evaluation& evaluation) {
  if (evaluation.problem != header_.problem) {
    note(report, "problem: '" + evaluation.problem + "', but the search is for " + header_.problem);
  }
  if (evaluation.kernel != report.candidate->name) {
    note(report, "kernel: '" + evaluation.kernel + "', but the reply's plan says '" +
                     report.candidate->name + "'");
  }
  if (evaluation.status != Status::passed) return;
  std::vector<std::string> references;
  for (const ReferenceResult& one : evaluation.references) references.push_back(one.id);
  if (references != header_.settings.references) {
    note(report, "references: not those of the search's settings");
  }
}

/// Times of different devices do not compare, unless the search compares shares of the reference's.
void EvaluationExaminer::examine_device(const CandidateReport& report,
                                        const Evaluation& evaluation) {
  const std::string device = device_in(*report.record);
  if (!evaluation.target.empty() && evaluation.target != header_.device.target) {
    note(report, "target: " + evaluation.target + ", but the search writes code for " +
                     header_.device.target);
  }
  if (device.empty()) {
    if (evaluation.timing) note(report, "device: none, but there are times");
    return;
  }
  if (device_.empty()) {
    device_ = device;
    device_of_ = report.id;
  } else if (device != device_ && !header_.settings.mixed_gpus) {
    note(report,
         "device: '" + device + "', but " + device_of_ + " was measured on '" + device_ + "'");
  }
}

}  // namespace rekernel

#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/candidate/candidate.h"
#include "harness/evaluation/evaluation.h"
#include "harness/evaluation/schedule.h"
#include "harness/gpu/cuda.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// What a kernel wrote of one of its runs, and what the run was for.
struct Sighting {
  Purpose purpose = Purpose::timed;
  int process = 0;
  bool judged = false;
  std::vector<std::uint32_t> words;  ///< the beginning of its output
};

/// The outcome of one evaluation and what else was measured in the same run.
struct EvaluationReport {
  /// Why nothing could be said about the candidate (no GPU, too little memory): a failure of the
  /// set-up and no verdict. Empty when there is a verdict.
  std::string failure;
  Evaluation evaluation;
  /// The device refused an access of the candidate: a run of mode `diagnosis` may tell to what.
  bool faulted = false;
  /// Which of the candidate's processes ended, from 0: its parent knows how. −1: none.
  int gone_runner = -1;
  std::optional<DeviceProperties> device;
  std::vector<NoiseRun> noise;      ///< of an A/A experiment
  std::vector<Sighting> sightings;  ///< of mode `blinding`
  /// Compiler, driver and libraries of the machine that evaluated, where that is another one.
  std::string toolchain;

  bool passed() const { return failure.empty() && evaluation.status == Status::passed; }
};

boost::json::object to_json(const EvaluationReport& report);
Result<EvaluationReport> report_from_json(const std::string& text);

/// What this program's sources give as the digest of an evaluation with these references.
std::string present_judge(const Evaluation& evaluation);
/// Says by what it was judged, once its references stand.
void note_judge(Evaluation& evaluation);

/// What an evaluation says of a candidate before anything was found out.
EvaluationReport blank_report(const Candidate& candidate);
/// Says that a candidate could not be evaluated, and why.
EvaluationReport not_evaluated(const Candidate& candidate, const std::string& why);

/// The number of the GPU for the processes of an evaluation: the launcher hides the others from
/// them, on each of which they would spend time.
constexpr int evaluated_gpu = 0;

}  // namespace rekernel

#pragma once

#include <boost/json/fwd.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"
#include "harness/candidate/candidate.h"
#include "ops/result.h"

namespace rekernel {

/// How a candidate is judged. The defaults are what a published verdict needs.
struct EvaluateOptions {
  enum class Mode {
    verdict,    ///< everything
    errors,     ///< every check of the values, no times: other work does no harm then
    sizes,      ///< a verdict's runs and times of a candidate at sizes that are not its problem's
                ///< own: no ceiling of the matrix unit, and no library
    noise,      ///< no judging: an A/A experiment
    blinding,   ///< a verdict's runs of a kernel that tells what it sees of each (blinding.h)
    diagnosis,  ///< after a fault: to which buffer was written where nothing may be?
    once,       ///< one checked run in one process, for sanitizers and profilers: no verdict
  };
  Mode mode = Mode::verdict;
  std::vector<std::string>
      references;  ///< ids to time beside the candidate; the first is the headline
  std::vector<std::string>
      external_references;  ///< ids of references in a process of their own (PyTorch)
  int device = 0;           ///< number of the GPU for the launcher and for external references
  int samples = 60;  ///< timed samples of each subject; `errors` judges so many and times none
  std::optional<std::uint64_t> seed;  ///< first of the seeds; fresh ones if absent
  bool stress = true;                 ///< run the stress inputs for the `robust` badge
  /// In mode `verdict`: a candidate in axes that passed is judged and timed at other sizes too, for
  /// the badge `any_size`.
  bool other_sizes = true;
  /// In mode `blinding`: a gap before runs that are not timed, which must be found.
  std::chrono::microseconds planted_gap{0};
  int noise_runs = 0;  ///< of mode `noise`
  /// In mode `noise`: a reference's id, or the candidate itself where it is empty.
  std::string noise_subject;
  /// Measure also where others use the GPU: such times are not recorded.
  bool shared_gpu = false;
  std::chrono::seconds startup_deadline{60};  ///< driver, libraries, engine choice, compilation
  /// For the candidate's runs together.
  std::chrono::seconds run_deadline{120};
  /// For checks and timing as a whole: past it, it is the judge that is late.
  std::chrono::seconds whole_deadline() const { return 2 * run_deadline; }

  bool takes_times() const {
    return mode == Mode::verdict || mode == Mode::sizes || mode == Mode::noise ||
           mode == Mode::blinding;
  }
  /// Whether nobody else may compute on the GPU meanwhile.
  bool has_the_gpu_alone() const { return takes_times() && !shared_gpu; }
};

boost::json::object to_json(const EvaluateOptions& options);
Result<EvaluateOptions> evaluate_options_from_json(JsonReader reader);

/// A candidate, at the sizes for which it is judged, and what is asked about it.
struct RequestedEvaluation {
  Candidate candidate;
  std::shared_ptr<const Problem> problem;  ///< at these sizes
  EvaluateOptions options;
};

/// Both as fields, for another process or machine, with the problem that the candidate is for: the
/// reader knows that problem from then on, whatever it finds on disk.
std::string evaluation_request(const Candidate& candidate, const EvaluateOptions& options);
Result<RequestedEvaluation> read_evaluation_request(std::string_view bytes,
                                                    const std::string& where);

}  // namespace rekernel

#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/evaluation.h"
#include "ops/result.h"

namespace rekernel {

/// An evaluation as a trajectory holds it: the evaluation's JSON with numbers that are not whole as
/// text ("9.2e-04"), with long texts shortened, and with the device's and the compiler's names. The
/// search looks at nothing else, so that recording loses nothing.
boost::json::object recorded_evaluation(const Evaluation& evaluation, const std::string& device,
                                        const std::string& toolchain);

/// The way back, as far as it goes: what is no whole number has four digits, and recordings from
/// before samples were kept have none. For the event of a candidate that compiled.
Result<Evaluation> evaluation_from_record(const boost::json::object& record,
                                          const std::string& where);

/// The GPU that a recorded evaluation was made on; empty if none was.
std::string device_in(const boost::json::object& record);

/// The recorded form for a reply that holds no candidate.
boost::json::object recorded_invalid_reply(const std::string& problem, const std::string& message);

/// What the search and the tables read from a recorded evaluation.
struct Outcome {
  Status status = Status::crashed;
  std::string message;
  std::optional<std::int64_t> median_ns;  ///< of candidates that passed
  std::string reference;                  ///< id of the headline reference, empty without one
  std::int64_t reference_ns = 0;
  std::string max_error;
  std::string rms_error;
  std::int64_t registers = -1;  ///< the most of any kernel; −1 if nothing was compiled
  std::int64_t spill_bytes = 0;
  std::int64_t stack_bytes = 0;  ///< of local memory, a thread: the most of any kernel
  std::string compile_log;
  Badges badges;

  bool passed() const { return status == Status::passed && median_ns.has_value(); }
  /// Reference time ÷ kernel time in tenths of a percent, rounded; 0 without either.
  std::int64_t permille_of_reference() const;
  /// What candidates that passed are ranked by, the least first: nanoseconds, or where GPUs differ
  /// the time in billionths of the reference's (without one: after all others).
  std::int64_t cost(bool gpus_differ) const;
};

/// Fails where a field that is read here has another type; fields that are not read may be
/// anything.
Result<Outcome> outcome_from_record(const boost::json::value& record, const std::string& where);

/// "98.1%" from tenths of a percent.
std::string percent_of_permille(std::int64_t permille);
/// "512.3 us" from nanoseconds.
std::string microseconds(std::int64_t nanoseconds);
/// The outcome in one line, as prompts show it.
std::string outcome_line(const Outcome& outcome);
/// What the compiler said, as far as it helps: errors, and warnings.
std::string prompt_log(const Outcome& outcome);

}  // namespace rekernel

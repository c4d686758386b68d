#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/instruments.h"
#include "harness/evaluation/rig.h"

namespace rekernel {

/// A rig with a loaded candidate, as a trial sees it.
class RigInstruments : public Instruments {
 public:
  /// `candidate` has a subject for each process. Keeps both.
  RigInstruments(Rig& rig, std::vector<Subject> candidate);

  std::uint64_t fresh_seed() override;
  RunTimes run_candidate(int process, PlannedInput& input, bool takes_time) override;
  RunTimes run_reference(std::size_t reference) override;
  Judgement judge(const PlannedInput& input) override;
  ErrorStats measure_errors() override;
  ErrorStats reference_errors(std::size_t reference, const PlannedInput& input) override;
  std::string digest() override;
  std::vector<std::uint32_t> first_words(std::size_t count) override;
  bool is_interrupted() override;
  void end_candidate() override;
  Result<std::vector<std::int64_t>> time_external(std::size_t external, int count) override;
  std::string external_details(std::size_t external) override;

 private:
  const StressCase* stress_of(const PlannedInput& input) const;
  Result<ExternalReference*> external(std::size_t number);

  Rig& rig_;
  std::vector<Subject> candidate_;
  /// From the judging of a run to the next inputs: their truth is computed once.
  std::optional<Checker::SameInputs> truth_;
  std::map<std::size_t, Result<std::unique_ptr<ExternalReference>>> externals_;
};

/// How long it takes to make the truth of an output and to compare it.
std::chrono::nanoseconds time_of_judgement(Rig& rig);

}  // namespace rekernel

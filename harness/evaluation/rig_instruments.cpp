#include "harness/evaluation/rig_instruments.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <utility>

namespace rekernel {

RigInstruments::RigInstruments(Rig& rig, std::vector<Subject> candidate)
    : rig_(rig), candidate_(std::move(candidate)) {}

std::uint64_t RigInstruments::fresh_seed() { return rig_.sampler.fresh_seed(); }

const StressCase* RigInstruments::stress_of(const PlannedInput& input) const {
  if (input.stress_case < 0) return nullptr;
  return &rig_.problem.stress_cases.at(static_cast<std::size_t>(input.stress_case));
}

RunTimes RigInstruments::run_candidate(int process, PlannedInput& input, bool takes_time) {
  truth_.reset();
  const Subject& subject = candidate_.at(static_cast<std::size_t>(process));
  if (!takes_time) return rig_.sampler.run(subject, input.seed, stress_of(input));
  return rig_.sampler.timed_run(subject, input.seed);
}

RunTimes RigInstruments::run_reference(std::size_t reference) {
  truth_.reset();
  std::uint64_t seed = fresh_seed();
  return rig_.sampler.timed_run(rig_.reference_subjects.at(reference), seed);
}

Judgement RigInstruments::judge(const PlannedInput& input) {
  truth_.emplace(rig_.checker);
  return rig_.checker.judge(rig_.candidate_buffers, stress_of(input));
}

ErrorStats RigInstruments::measure_errors() { return rig_.checker.measure_errors(); }

ErrorStats RigInstruments::reference_errors(std::size_t reference, const PlannedInput& input) {
  rig_.sampler.run(rig_.reference_subjects.at(reference), input.seed, stress_of(input));
  return rig_.checker.measure_errors();
}

std::string RigInstruments::digest() {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, rig_.checker.digest());
  return text.data();
}

std::vector<std::uint32_t> RigInstruments::first_words(std::size_t count) {
  const std::string& output = rig_.problem.largest(Role::output).name;
  const BufferView snapshot = rig_.checker.snapshots().at(output);
  std::vector<std::uint32_t> words(
      std::min(count, static_cast<std::size_t>(snapshot.bytes) / sizeof(std::uint32_t)));
  REKERNEL_CUDA(cuMemcpyDtoH(words.data(), snapshot.pointer, words.size() * sizeof(std::uint32_t)));
  return words;
}

bool RigInstruments::is_interrupted() { return rekernel::is_interrupted(rig_); }

void RigInstruments::end_candidate() {
  for (RemoteRunner* runner : rig_.runners) runner->hang_up();
}

Result<ExternalReference*> RigInstruments::external(std::size_t number) {
  auto found = externals_.find(number);
  if (found == externals_.end()) {
    std::array<FileDescriptor, 2>& descriptors = rig_.externals.at(number);
    found = externals_
                .emplace(number, rig_.source.make_external(
                                     rig_.options.external_references.at(number), rig_.problem,
                                     {descriptors[0].release(), descriptors[1].release()},
                                     rig_.options.device))
                .first;
  }
  if (!found->second) return found->second.error();
  return found->second->get();
}

Result<std::vector<std::int64_t>> RigInstruments::time_external(std::size_t number, int count) {
  const Result<ExternalReference*> reference = external(number);
  if (!reference) return reference.error();
  return (*reference)->time_block(count, fresh_seed());
}

std::string RigInstruments::external_details(std::size_t number) {
  const Result<ExternalReference*> reference = external(number);
  return reference ? (*reference)->details() : "";
}

std::chrono::nanoseconds time_of_judgement(Rig& rig) {
  const auto start = std::chrono::steady_clock::now();
  rig.checker.measure_errors();
  return std::chrono::steady_clock::now() - start;
}

}  // namespace rekernel

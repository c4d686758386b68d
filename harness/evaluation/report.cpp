#include "harness/evaluation/report.h"

#include <limits>
#include <tuple>
#include <utility>

#include "harness/base/harness_digest.h"
#include "harness/base/json_fields.h"
#include "harness/candidate/candidate.h"
#include "harness/candidate/code.h"
#include "harness/problems/catalog.h"

namespace rekernel {

namespace {

namespace report_json {

// The words of field lists, in a namespace that has nothing else.
// NOLINTNEXTLINE(google-build-using-namespace)
using namespace json_fields;

constexpr std::tuple sighting_fields{
    field("purpose", &Sighting::purpose, Whole{0, static_cast<int>(Purpose::stress)}),
    field("process", &Sighting::process, Whole{0, 1}), field("judged", &Sighting::judged, flag),
    field("words", &Sighting::words, List{Whole{0, std::numeric_limits<std::uint32_t>::max()}})};

constexpr std::tuple device_fields{
    field("name", &DeviceProperties::name, text),
    field("uuid", &DeviceProperties::uuid, text),
    field("major", &DeviceProperties::major, Whole{0, 1000}),
    field("minor", &DeviceProperties::minor, Whole{0, 1000}),
    field("multiprocessors", &DeviceProperties::multiprocessors, Whole{0, 1 << 20}),
    field("l2_bytes", &DeviceProperties::l2_bytes, count),
    field("memory_bytes", &DeviceProperties::memory_bytes, count),
    field("shared_bytes_per_block", &DeviceProperties::shared_bytes_per_block, count),
    field("clock_khz", &DeviceProperties::clock_khz, count),
    field("memory_clock_khz", &DeviceProperties::memory_clock_khz, count),
    field("memory_bus_bits", &DeviceProperties::memory_bus_bits, count),
    field("driver_version", &DeviceProperties::driver_version, Whole{0, 1 << 30})};

/// Its own errors are the reader's.
Evaluation read_evaluation(JsonReader reader) {
  Result<Evaluation> evaluation = evaluation_from_json(std::move(reader));
  return evaluation ? std::move(*evaluation) : Evaluation{};
}

constexpr std::tuple report_fields{
    field("failure", &EvaluationReport::failure, text),
    field("evaluation", &EvaluationReport::evaluation, By{&read_evaluation}),
    field("faulted", &EvaluationReport::faulted, flag),
    field("gone_runner", &EvaluationReport::gone_runner, Whole{-1, 1}),
    field("noise", &EvaluationReport::noise, List{By{&noise_run_from_json}}),
    field("sightings", &EvaluationReport::sightings, List{Nested{sighting_fields}}, unless_empty),
    field("device", &EvaluationReport::device, Nested{device_fields}, unless_empty),
    field("toolchain", &EvaluationReport::toolchain, Text{4096}, unless_empty)};

}  // namespace report_json

}  // namespace

boost::json::object to_json(const EvaluationReport& report) {
  return object_of(report, report_json::report_fields);
}

Result<EvaluationReport> report_from_json(const std::string& text) {
  constexpr const char* where = "evaluation report";
  Result<boost::json::value> json = parse_json(text, where);
  if (!json) return json.error();
  JsonReader reader(where, *json);
  EvaluationReport report = read_object<EvaluationReport>(reader, report_json::report_fields);
  if (auto error = reader.error()) return *error;
  return report;
}

EvaluationReport blank_report(const Candidate& candidate) {
  EvaluationReport report;
  report.evaluation.problem = candidate.problem;
  report.evaluation.kernel = candidate.name;
  report.evaluation.sha256 = candidate_sha256(candidate);
  note_judge(report.evaluation);
  return report;
}

std::string present_judge(const Evaluation& evaluation) {
  std::vector<std::string> references;
  for (const ReferenceResult& one : evaluation.references) references.push_back(one.id);
  return harness_digest(digest_of_problem(evaluation.problem), references);
}

void note_judge(Evaluation& evaluation) { evaluation.harness = present_judge(evaluation); }

EvaluationReport not_evaluated(const Candidate& candidate, const std::string& why) {
  EvaluationReport report = blank_report(candidate);
  report.failure = why;
  return report;
}

}  // namespace rekernel

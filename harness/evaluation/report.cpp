#include "harness/evaluation/report.h"

#include <array>
#include <boost/json.hpp>
#include <limits>
#include <utility>

#include "harness/base/harness_digest.h"
#include "harness/candidate/candidate.h"
#include "harness/candidate/code.h"

namespace rekernel {

namespace {

boost::json::object to_json(const Sighting& sighting) {
  return {{"purpose", static_cast<int>(sighting.purpose)},
          {"process", sighting.process},
          {"judged", sighting.judged},
          {"words", boost::json::value_from(sighting.words)}};
}

Sighting read_sighting(JsonReader reader) {
  Sighting sighting;
  sighting.purpose = static_cast<Purpose>(
      reader.required("purpose").integer(0, static_cast<int>(Purpose::stress)));
  sighting.process = static_cast<int>(reader.required("process").integer(0, 1));
  sighting.judged = reader.required("judged").boolean();
  for (JsonReader& word : reader.required("words").array()) {
    sighting.words.push_back(
        static_cast<std::uint32_t>(word.integer(0, std::numeric_limits<std::uint32_t>::max())));
  }
  return sighting;
}

boost::json::object to_json(const DeviceProperties& device) {
  return {{"name", device.name},
          {"uuid", device.uuid},
          {"major", device.major},
          {"minor", device.minor},
          {"multiprocessors", device.multiprocessors},
          {"l2_bytes", device.l2_bytes},
          {"memory_bytes", device.memory_bytes},
          {"shared_bytes_per_block", device.shared_bytes_per_block},
          {"clock_khz", device.clock_khz},
          {"memory_clock_khz", device.memory_clock_khz},
          {"memory_bus_bits", device.memory_bus_bits},
          {"driver_version", device.driver_version}};
}

DeviceProperties read_device(JsonReader reader) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  DeviceProperties device;
  device.name = reader.required("name").string();
  device.uuid = reader.required("uuid").string();
  device.major = static_cast<int>(reader.required("major").integer(0, 1000));
  device.minor = static_cast<int>(reader.required("minor").integer(0, 1000));
  device.multiprocessors = static_cast<int>(reader.required("multiprocessors").integer(0, 1 << 20));
  device.l2_bytes = reader.required("l2_bytes").integer(0, most);
  device.memory_bytes = reader.required("memory_bytes").integer(0, most);
  device.shared_bytes_per_block = reader.required("shared_bytes_per_block").integer(0, most);
  device.clock_khz = reader.required("clock_khz").integer(0, most);
  device.memory_clock_khz = reader.required("memory_clock_khz").integer(0, most);
  device.memory_bus_bits = reader.required("memory_bus_bits").integer(0, most);
  device.driver_version = static_cast<int>(reader.required("driver_version").integer(0, 1 << 30));
  return device;
}

}  // namespace

boost::json::object to_json(const EvaluationReport& report) {
  boost::json::object json{{"failure", report.failure},
                           {"evaluation", to_json(report.evaluation)},
                           {"faulted", report.faulted},
                           {"gone_runner", report.gone_runner}};
  boost::json::array noise;
  for (const NoiseRun& run : report.noise) noise.push_back(to_json(run));
  json["noise"] = std::move(noise);
  if (!report.sightings.empty()) {
    boost::json::array& sightings = json["sightings"].emplace_array();
    for (const Sighting& sighting : report.sightings) sightings.push_back(to_json(sighting));
  }
  if (report.device) json["device"] = to_json(*report.device);
  if (!report.toolchain.empty()) json["toolchain"] = report.toolchain;
  return json;
}

Result<EvaluationReport> report_from_json(const std::string& text) {
  constexpr const char* where = "evaluation report";
  Result<boost::json::value> json = parse_json(text, where);
  if (!json) return json.error();
  JsonReader reader(where, *json);
  EvaluationReport report;
  report.failure = reader.required("failure").string();
  Result<Evaluation> evaluation = evaluation_from_json(reader.required("evaluation"));
  if (!evaluation) return evaluation.error();
  report.evaluation = std::move(*evaluation);
  report.faulted = reader.required("faulted").boolean();
  report.gone_runner = static_cast<int>(reader.required("gone_runner").integer(-1, 1));
  for (JsonReader& run : reader.required("noise").array()) {
    report.noise.push_back(noise_run_from_json(run));
  }
  if (auto sightings = reader.optional("sightings")) {
    for (JsonReader& one : sightings->array()) report.sightings.push_back(read_sighting(one));
  }
  if (auto device = reader.optional("device")) report.device = read_device(*device);
  if (auto toolchain = reader.optional("toolchain")) report.toolchain = toolchain->string(4096);
  reader.no_other_keys();
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
  return harness_digest(evaluation.problem, references);
}

void note_judge(Evaluation& evaluation) { evaluation.harness = present_judge(evaluation); }

EvaluationReport not_evaluated(const Candidate& candidate, const std::string& why) {
  EvaluationReport report = blank_report(candidate);
  report.failure = why;
  return report;
}

}  // namespace rekernel

#include "harness/evaluation/evaluation.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <limits>

namespace rekernel {

namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();

/// JSON has no infinity: null stands for it.
boost::json::value real(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

double read_real(JsonReader reader) {
  if (reader.raw().is_null()) return std::numeric_limits<double>::infinity();
  return reader.real();
}

std::int64_t read_count(JsonReader reader) { return reader.integer(0, int64_max); }

boost::json::object to_json(const ErrorStats& stats) {
  return {{"max_abs", real(stats.max_abs)},
          {"rms", real(stats.rms)},
          {"truth_rms", real(stats.truth_rms)},
          {"worst_tolerance_ratio", real(stats.worst_tolerance_ratio)},
          {"worst_strict_ratio", real(stats.worst_strict_ratio)},
          {"failing", stats.failing},
          {"unwritten", stats.unwritten},
          {"first_failing", stats.first_failing},
          {"first_value", real(stats.first_value)},
          {"first_truth", real(stats.first_truth)}};
}

ErrorStats read_errors(JsonReader reader) {
  ErrorStats stats;
  stats.max_abs = read_real(reader.required("max_abs"));
  stats.rms = read_real(reader.required("rms"));
  stats.truth_rms = read_real(reader.required("truth_rms"));
  stats.worst_tolerance_ratio = read_real(reader.required("worst_tolerance_ratio"));
  stats.worst_strict_ratio = read_real(reader.required("worst_strict_ratio"));
  stats.failing = read_count(reader.required("failing"));
  stats.unwritten = read_count(reader.required("unwritten"));
  stats.first_failing = reader.required("first_failing").integer(-1, int64_max);
  stats.first_value = read_real(reader.required("first_value"));
  stats.first_truth = read_real(reader.required("first_truth"));
  reader.no_other_keys();
  return stats;
}

boost::json::object to_json(const Timing& timing) {
  boost::json::array samples(timing.samples_ns.begin(), timing.samples_ns.end());
  return {{"median_ns", timing.median_ns},
          {"low_ns", timing.low_ns},
          {"high_ns", timing.high_ns},
          {"samples_ns", std::move(samples)}};
}

Timing read_timing(JsonReader reader) {
  Timing timing;
  timing.median_ns = read_count(reader.required("median_ns"));
  timing.low_ns = read_count(reader.required("low_ns"));
  timing.high_ns = read_count(reader.required("high_ns"));
  for (JsonReader& sample : reader.required("samples_ns").array()) {
    timing.samples_ns.push_back(read_count(sample));
  }
  reader.no_other_keys();
  return timing;
}

boost::json::object to_json(const Percent& percent) {
  return {{"value", real(percent.value)}, {"low", real(percent.low)}, {"high", real(percent.high)}};
}

Percent read_percent(JsonReader reader) {
  Percent percent;
  percent.value = read_real(reader.required("value"));
  percent.low = read_real(reader.required("low"));
  percent.high = read_real(reader.required("high"));
  reader.no_other_keys();
  return percent;
}

std::vector<std::int64_t> read_samples(JsonReader reader) {
  std::vector<std::int64_t> samples;
  for (JsonReader& sample : reader.array(1)) samples.push_back(read_count(sample));
  return samples;
}

boost::json::object to_json(const ReferenceResult& reference) {
  boost::json::object json{{"id", reference.id},
                           {"details", reference.details},
                           {"unavailable", reference.unavailable},
                           {"timing", to_json(reference.timing)}};
  if (reference.errors) json["errors"] = to_json(*reference.errors);
  if (reference.percent_of_reference) json["percent"] = to_json(*reference.percent_of_reference);
  if (!reference.kernel_samples_ns.empty()) {
    json["kernel_samples_ns"] = boost::json::value_from(reference.kernel_samples_ns);
  }
  return json;
}

ReferenceResult read_reference(JsonReader reader) {
  ReferenceResult reference;
  reference.id = reader.required("id").string();
  reference.details = reader.required("details").string();
  reference.unavailable = reader.required("unavailable").string();
  reference.timing = read_timing(reader.required("timing"));
  if (auto errors = reader.optional("errors")) reference.errors = read_errors(*errors);
  if (auto percent = reader.optional("percent")) {
    reference.percent_of_reference = read_percent(*percent);
  }
  if (auto samples = reader.optional("kernel_samples_ns")) {
    reference.kernel_samples_ns = read_samples(*samples);
  }
  reader.no_other_keys();
  return reference;
}

boost::json::object to_json(const BadgeEvidence& evidence) {
  boost::json::object stress;
  for (const auto& [name, ratio] : evidence.stress) stress[name] = real(ratio);
  boost::json::object json{{"stress", std::move(stress)},
                           {"digests", boost::json::value_from(evidence.digests)}};
  if (evidence.strict_share) json["strict_share"] = real(*evidence.strict_share);
  return json;
}

std::vector<Witness> read_witnesses(JsonReader reader) {
  // The second process took no times when there was one witness.
  if (reader.is_object()) return {witness_from_json(reader)};
  std::vector<Witness> witnesses;
  for (JsonReader& witness : reader.array(1, 2)) witnesses.push_back(witness_from_json(witness));
  return witnesses;
}

BadgeEvidence read_evidence(JsonReader reader) {
  BadgeEvidence evidence;
  for (auto& [name, ratio] : reader.required("stress").entries()) {
    evidence.stress.emplace_back(name, read_real(ratio));
  }
  evidence.digests = digests_from_json(reader.required("digests"));
  if (auto share = reader.optional("strict_share")) evidence.strict_share = read_real(*share);
  reader.no_other_keys();
  return evidence;
}

template <class T>
boost::json::array array_of(const std::vector<T>& values) {
  boost::json::array array;
  for (const T& value : values) array.push_back(to_json(value));
  return array;
}

}  // namespace

std::vector<std::vector<std::string>> digests_from_json(JsonReader reader) {
  constexpr std::size_t most_digests = 4096;
  constexpr std::size_t digest_digits = 16;
  const boost::json::array* all = reader.raw().if_array();
  // Once, one input alone was run again.
  if (all && !all->empty() && all->front().is_string()) {
    return {reader.strings(most_digests, digest_digits)};
  }
  std::vector<std::vector<std::string>> digests;
  for (JsonReader& group : reader.array(0, most_digests)) {
    digests.push_back(group.strings(most_digests, digest_digits));
  }
  return digests;
}

bool BadgeEvidence::repeats_agree() const {
  return std::all_of(digests.begin(), digests.end(), [](const std::vector<std::string>& group) {
    return std::equal(group.begin() + (group.empty() ? 0 : 1), group.end(), group.begin());
  });
}

boost::json::object to_json(const KernelResources& kernel) {
  return {{"name", kernel.name},
          {"registers", kernel.registers},
          {"static_shared_bytes", kernel.static_shared_bytes},
          {"stack_bytes", kernel.stack_bytes},
          {"spill_store_bytes", kernel.spill_store_bytes},
          {"spill_load_bytes", kernel.spill_load_bytes}};
}

KernelResources resources_from_json(JsonReader reader) {
  KernelResources kernel;
  kernel.name = reader.required("name").string();
  kernel.registers = static_cast<int>(reader.required("registers").integer(0, 1 << 16));
  kernel.static_shared_bytes = read_count(reader.required("static_shared_bytes"));
  kernel.stack_bytes = read_count(reader.required("stack_bytes"));
  kernel.spill_store_bytes = read_count(reader.required("spill_store_bytes"));
  kernel.spill_load_bytes = read_count(reader.required("spill_load_bytes"));
  reader.no_other_keys();
  return kernel;
}

boost::json::object to_json(const Ceilings& ceilings) {
  return {{"copy_bytes_per_s", ceilings.copy_bytes_per_s},
          {"fp16_flops_per_s", ceilings.fp16_flops_per_s}};
}

Ceilings ceilings_from_json(JsonReader reader) {
  Ceilings ceilings;
  ceilings.copy_bytes_per_s = read_count(reader.required("copy_bytes_per_s"));
  ceilings.fp16_flops_per_s = read_count(reader.required("fp16_flops_per_s"));
  reader.no_other_keys();
  return ceilings;
}

boost::json::object to_json(const GpuConditions& conditions) {
  boost::json::object json{{"sm_clock_mhz", conditions.sm_clock_mhz},
                           {"temperature_c", conditions.temperature_c},
                           {"power_w", conditions.power_w},
                           {"throttle_reasons", conditions.throttle_reasons},
                           {"rejected_samples", conditions.rejected_samples}};
  if (!conditions.graphics.empty()) {
    json["graphics"] = boost::json::value_from(conditions.graphics);
  }
  return json;
}

GpuConditions conditions_from_json(JsonReader reader) {
  GpuConditions conditions;
  conditions.sm_clock_mhz = static_cast<int>(reader.required("sm_clock_mhz").integer(0, 1 << 20));
  conditions.temperature_c = static_cast<int>(reader.required("temperature_c").integer(-273, 1000));
  conditions.power_w = static_cast<int>(reader.required("power_w").integer(0, 1 << 20));
  conditions.throttle_reasons = reader.required("throttle_reasons").integer(int64_min, int64_max);
  conditions.rejected_samples =
      static_cast<int>(reader.required("rejected_samples").integer(0, 1 << 20));
  if (auto graphics = reader.optional("graphics")) conditions.graphics = graphics->strings(64, 256);
  reader.no_other_keys();
  return conditions;
}

boost::json::object to_json(const NoiseRun& run) {
  return {{"first_ns", boost::json::value_from(run.first_ns)},
          {"second_ns", boost::json::value_from(run.second_ns)}};
}

NoiseRun noise_run_from_json(JsonReader reader) {
  NoiseRun run;
  run.first_ns = read_samples(reader.required("first_ns"));
  run.second_ns = read_samples(reader.required("second_ns"));
  reader.no_other_keys();
  return run;
}

std::vector<std::string> Evaluation::badges() const {
  std::vector<std::string> names;
  if (status != Status::passed) return names;
  if (strict) names.emplace_back("strict");
  if (robust) names.emplace_back("robust");
  if (deterministic) names.emplace_back("deterministic");
  return names;
}

std::int64_t Evaluation::least_median_ns() const {
  std::int64_t least = timing->median_ns;
  for (const Witness& witness : witnesses) least = std::min(least, witness.median_ns);
  return least;
}

const ReferenceResult* Evaluation::headline() const {
  for (const ReferenceResult& reference : references) {
    if (reference.unavailable.empty()) return &reference;
  }
  return nullptr;
}

boost::json::object to_json(const Evaluation& evaluation) {
  boost::json::array seeds;
  for (std::uint64_t seed : evaluation.seeds) seeds.push_back(boost::json::value(seed));
  boost::json::object split;
  for (const auto& [phase, nanoseconds] : evaluation.split_ns) split[phase] = nanoseconds;

  boost::json::object json{{"problem", evaluation.problem},
                           {"kernel", evaluation.kernel},
                           {"sha256", evaluation.sha256},
                           {"status", to_string(evaluation.status)},
                           {"message", evaluation.message},
                           {"target", evaluation.target},
                           {"resources", array_of(evaluation.resources)},
                           {"compile_log", evaluation.compile_log},
                           {"seeds", std::move(seeds)},
                           {"strict", evaluation.strict},
                           {"robust", evaluation.robust},
                           {"deterministic", evaluation.deterministic},
                           {"badge_notes", evaluation.badge_notes},
                           {"ceiling_ns", evaluation.ceiling_ns},
                           {"speed_of_light_ns", evaluation.speed_of_light_ns},
                           {"references", array_of(evaluation.references)},
                           {"reference_noise_ppm", evaluation.reference_noise_ppm},
                           {"conditions", to_json(evaluation.conditions)},
                           {"split_ns", std::move(split)}};
  if (!evaluation.check.empty()) json["check"] = evaluation.check;
  if (!evaluation.libraries.empty()) {
    json["libraries"] = boost::json::value_from(evaluation.libraries);
  }
  if (evaluation.errors) json["errors"] = to_json(*evaluation.errors);
  if (evaluation.timing) json["timing"] = to_json(*evaluation.timing);
  if (!evaluation.witnesses.empty()) json["witness"] = array_of(evaluation.witnesses);
  // What follows is in no evaluation that was recorded before it was kept.
  if (!evaluation.harness.empty()) json["harness"] = evaluation.harness;
  if (evaluation.evidence) json["evidence"] = to_json(*evaluation.evidence);
  if (!evaluation.stress_left_out.empty()) {
    json["stress_left_out"] = boost::json::value_from(evaluation.stress_left_out);
  }
  if (evaluation.ceilings.copy_bytes_per_s > 0) json["ceilings"] = to_json(evaluation.ceilings);
  if (!evaluation.repeated_headline_ns.empty()) {
    json["repeated_headline_ns"] = boost::json::value_from(evaluation.repeated_headline_ns);
  }
  return json;
}

Result<Evaluation> evaluation_from_json(JsonReader reader) {
  Evaluation evaluation;
  evaluation.problem = reader.required("problem").string();
  evaluation.kernel = reader.required("kernel").string();
  evaluation.sha256 = reader.required("sha256").string();
  JsonReader status = reader.required("status");
  if (auto known = status_from_string(status.string())) {
    evaluation.status = *known;
  } else {
    status.expect("a status");
  }
  evaluation.message = reader.required("message").string();
  if (auto check = reader.optional("check")) evaluation.check = check->string();
  evaluation.target = reader.required("target").string();
  for (JsonReader& kernel : reader.required("resources").array()) {
    evaluation.resources.push_back(resources_from_json(kernel));
  }
  evaluation.compile_log = reader.required("compile_log").string();
  for (JsonReader& seed : reader.required("seeds").array()) {
    if (seed.raw().is_uint64()) {
      evaluation.seeds.push_back(seed.raw().get_uint64());
    } else {
      evaluation.seeds.push_back(static_cast<std::uint64_t>(read_count(seed)));
    }
  }
  evaluation.strict = reader.required("strict").boolean();
  evaluation.robust = reader.required("robust").boolean();
  evaluation.deterministic = reader.required("deterministic").boolean();
  evaluation.badge_notes = reader.required("badge_notes").string();
  // Until there were two bounds, the ceiling was called the floor.
  evaluation.ceiling_ns =
      read_count(reader.required(reader.has("floor_ns") ? "floor_ns" : "ceiling_ns"));
  if (auto least = reader.optional("speed_of_light_ns")) {
    evaluation.speed_of_light_ns = read_count(*least);
  }
  for (JsonReader& reference : reader.required("references").array()) {
    evaluation.references.push_back(read_reference(reference));
  }
  evaluation.reference_noise_ppm = read_count(reader.required("reference_noise_ppm"));
  evaluation.conditions = conditions_from_json(reader.required("conditions"));
  for (auto& [phase, nanoseconds] : reader.required("split_ns").entries()) {
    evaluation.split_ns.emplace_back(phase, read_count(nanoseconds));
  }
  if (auto libraries = reader.optional("libraries")) {
    evaluation.libraries = libraries->strings(64, 64);
  }
  if (auto errors = reader.optional("errors")) evaluation.errors = read_errors(*errors);
  if (auto timing = reader.optional("timing")) evaluation.timing = read_timing(*timing);
  if (auto witness = reader.optional("witness")) {
    evaluation.witnesses = read_witnesses(*witness);
  }
  if (auto harness = reader.optional("harness")) evaluation.harness = harness->string(64);
  if (auto evidence = reader.optional("evidence")) evaluation.evidence = read_evidence(*evidence);
  if (auto left_out = reader.optional("stress_left_out")) {
    evaluation.stress_left_out = left_out->strings(64, 256);
  }
  if (auto ceilings = reader.optional("ceilings")) {
    evaluation.ceilings = ceilings_from_json(*ceilings);
  }
  if (auto samples = reader.optional("repeated_headline_ns")) {
    evaluation.repeated_headline_ns = read_samples(*samples);
  }
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return evaluation;
}

}  // namespace rekernel

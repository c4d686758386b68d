#include "harness/records/record.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>
#include <set>
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/harness_digest.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/records/contradictions.h"
#include "ops/catalog.h"

namespace rekernel {

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

constexpr int schema = 3;
constexpr std::size_t max_witnesses = 16;

/// Percentages are recorded to one decimal.
double one_decimal(double value) { return std::round(value * 10.0) / 10.0; }

void put_samples(boost::json::object& json, std::string_view key,
                 const std::vector<std::int64_t>& samples_ns) {
  if (!samples_ns.empty()) json[key] = boost::json::value_from(samples_ns);
}

std::vector<std::int64_t> optional_samples(JsonReader& reader, std::string_view key) {
  std::vector<std::int64_t> samples_ns;
  if (auto samples = reader.optional(key)) {
    for (JsonReader& sample : samples->array(1)) samples_ns.push_back(sample.integer(1, most));
  }
  return samples_ns;
}

/// Numbers that are not whole are recorded as text, with four digits.
double read_real(JsonReader reader) {
  const std::string text = reader.string(32);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) reader.expect("a number as text");
  return value;
}

boost::json::object to_json(const RecordedReference& reference) {
  if (!reference.unavailable.empty()) return {{"unavailable", reference.unavailable}};
  boost::json::object json{{"median_ns", reference.median_ns},
                           {"percent", one_decimal(reference.percent.value)},
                           {"low", one_decimal(reference.percent.low)},
                           {"high", one_decimal(reference.percent.high)}};
  if (!reference.details.empty()) json["details"] = reference.details;
  put_samples(json, "samples_ns", reference.samples_ns);
  put_samples(json, "kernel_samples_ns", reference.kernel_samples_ns);
  return json;
}

boost::json::object to_json(const BadgeEvidence& evidence) {
  boost::json::object json;
  if (evidence.strict_share) json["strict_share"] = share_text(*evidence.strict_share);
  boost::json::object stress;
  for (const auto& [name, ratio] : evidence.stress) stress[name] = share_text(ratio);
  json["stress"] = std::move(stress);
  json["digests"] = boost::json::value_from(evidence.digests);
  return json;
}

boost::json::object to_json(const BenchRow& row) {
  boost::json::object json{{"problem", row.problem},
                           {"kernel", row.kernel},
                           {"sha256", row.sha256},
                           {"status", to_string(row.status)},
                           {"badges", to_json(row.badges)},
                           {"measured", row.measured},
                           {"median_ns", row.median_ns},
                           {"low_ns", row.low_ns},
                           {"high_ns", row.high_ns},
                           {"ceiling_ns", row.ceiling_ns},
                           {"speed_of_light_ns", row.speed_of_light_ns}};
  if (!row.message.empty()) json["message"] = row.message;
  if (!row.badge_notes.empty()) json["badge_notes"] = row.badge_notes;
  json["max_error"] = row.max_error;
  json["rms_error"] = row.rms_error;
  json["library_max_error"] = row.library_max_error;
  json["library_rms_error"] = row.library_rms_error;
  if (!row.truth_rms.empty()) {
    json["truth_rms"] = row.truth_rms;
    json["tolerance_share"] = row.tolerance_share;
  }
  json["noise_ppm"] = row.noise_ppm;
  put_samples(json, "samples_ns", row.samples_ns);
  put_samples(json, "repeated_headline_ns", row.repeated_headline_ns);
  if (!row.witnesses.empty()) {
    boost::json::array& witnesses = json["witnesses"].emplace_array();
    for (const Witness& witness : row.witnesses) witnesses.push_back(rekernel::to_json(witness));
  }
  if (!row.resources.empty()) json["resources"] = rekernel::to_json(row.resources);
  json["conditions"] = rekernel::to_json(row.conditions);
  if (row.evidence) json["evidence"] = to_json(*row.evidence);
  if (!row.harness.empty()) json["harness"] = row.harness;
  if (!row.toolchain.empty()) json["toolchain"] = boost::json::value_from(row.toolchain);
  if (row.ceilings.copy_bytes_per_s > 0) json["ceilings"] = rekernel::to_json(row.ceilings);
  if (!row.signature.empty()) json["signature"] = row.signature;
  boost::json::object references;
  for (const RecordedReference& reference : row.references) {
    references[reference.id] = to_json(reference);
  }
  json["references"] = std::move(references);
  if (const RecordedReference* headline = row.headline()) {
    json["percent_of_reference"] = {{"headline", one_decimal(headline->percent.value)},
                                    {"low", one_decimal(headline->percent.low)},
                                    {"high", one_decimal(headline->percent.high)},
                                    {"reference", headline->id}};
  }
  return json;
}

/// The interval around a percentage can reach below 0. The bounds keep its decimal exact.
double read_percent(JsonReader reader) {
  constexpr double max_percent = 1e9;
  const double value = reader.real();
  if (!(std::abs(value) <= max_percent)) reader.expect("a percentage of at most 1000000000");
  return value;
}

RecordedReference read_reference(const std::string& id, JsonReader reader) {
  RecordedReference reference;
  reference.id = id;
  reference.unavailable = reader.optional_string("unavailable");
  if (reference.unavailable.empty()) {
    reference.median_ns = reader.required("median_ns").integer(0, most);
    reference.percent.value = read_percent(reader.required("percent"));
    reference.percent.low = read_percent(reader.required("low"));
    reference.percent.high = read_percent(reader.required("high"));
    reference.details = reader.optional_string("details");
    reference.samples_ns = optional_samples(reader, "samples_ns");
    reference.kernel_samples_ns = optional_samples(reader, "kernel_samples_ns");
  }
  reader.no_other_keys();
  return reference;
}

BadgeEvidence read_evidence(JsonReader reader) {
  BadgeEvidence evidence;
  if (auto share = reader.optional("strict_share")) evidence.strict_share = read_real(*share);
  for (auto& [name, ratio] : reader.required("stress").entries()) {
    evidence.stress.emplace_back(name, read_real(ratio));
  }
  evidence.digests = digests_from_json(reader.required("digests"));
  reader.no_other_keys();
  return evidence;
}

/// What is repeated there of the first reference.
void check_headline(const BenchRow& row, JsonReader reader) {
  const RecordedReference* headline = row.headline();
  const std::string reference = reader.required("reference").string();
  const double value = read_percent(reader.required("headline"));
  const double low = read_percent(reader.required("low"));
  const double high = read_percent(reader.required("high"));
  if (!headline || reference != headline->id || value != headline->percent.value ||
      low != headline->percent.low || high != headline->percent.high) {
    reader.fail("not what stands in the row's first reference");
  }
}

BenchRow read_bench_row(JsonReader reader) {
  BenchRow row;
  row.problem = reader.required("problem").string();
  row.kernel = reader.required("kernel").string();
  row.sha256 = reader.required("sha256").string();
  JsonReader status = reader.required("status");
  if (auto known = status_from_string(status.string())) {
    row.status = *known;
  } else {
    status.expect("a status");
  }
  row.badges = badges_from_json(reader.required("badges"));
  row.measured = reader.required("measured").string();
  row.median_ns = reader.required("median_ns").integer(0, most);
  row.low_ns = reader.required("low_ns").integer(0, most);
  row.high_ns = reader.required("high_ns").integer(0, most);
  row.ceiling_ns = reader.required("ceiling_ns").integer(0, most);
  row.speed_of_light_ns = reader.required("speed_of_light_ns").integer(0, most);
  row.message = reader.optional_string("message");
  row.badge_notes = reader.optional_string("badge_notes");
  row.max_error = reader.required("max_error").string();
  row.rms_error = reader.required("rms_error").string();
  row.library_max_error = reader.required("library_max_error").string();
  row.library_rms_error = reader.required("library_rms_error").string();
  row.truth_rms = reader.optional_string("truth_rms");
  row.tolerance_share = reader.optional_string("tolerance_share");
  row.noise_ppm = reader.required("noise_ppm").integer(0, most);
  row.samples_ns = optional_samples(reader, "samples_ns");
  row.repeated_headline_ns = optional_samples(reader, "repeated_headline_ns");
  if (auto witnesses = reader.optional("witnesses")) {
    for (JsonReader& witness : witnesses->array(1, max_witnesses)) {
      row.witnesses.push_back(witness_from_json(witness));
    }
  }
  if (auto resources = reader.optional("resources")) {
    for (JsonReader& kernel : resources->array())
      row.resources.push_back(resources_from_json(kernel));
  }
  row.conditions = conditions_from_json(reader.required("conditions"));
  if (auto evidence = reader.optional("evidence")) row.evidence = read_evidence(*evidence);
  row.harness = reader.optional_string("harness");
  row.signature = reader.optional_string("signature");
  if (auto toolchain = reader.optional("toolchain")) row.toolchain = toolchain->string_map(256);
  if (auto ceilings = reader.optional("ceilings")) row.ceilings = ceilings_from_json(*ceilings);
  for (auto& [id, reference] : reader.required("references").entries()) {
    row.references.push_back(read_reference(id, reference));
  }
  if (auto derived = reader.optional("percent_of_reference")) check_headline(row, *derived);
  reader.no_other_keys();
  return row;
}

int catalog_position(const std::string& problem) {
  int position = 0;
  for (const Problem& known : catalog()) {
    if (known.id == problem) break;
    ++position;
  }
  return position;
}

}  // namespace

const RecordedReference* BenchRow::headline() const {
  for (const RecordedReference& reference : references) {
    if (reference.unavailable.empty()) return &reference;
  }
  return nullptr;
}

const RecordedReference* BenchRow::find(std::string_view id) const {
  for (const RecordedReference& reference : references) {
    if (reference.id == id && reference.unavailable.empty()) return &reference;
  }
  return nullptr;
}

bool BenchRow::complete() const {
  if (harness.empty() || toolchain.empty() || (median_ns > 0 && samples_ns.empty())) return false;
  return status != Status::passed || (evidence && ceilings.copy_bytes_per_s > 0);
}

BenchRow bench_row(const Evaluation& evaluation,
                   const std::map<std::string, std::string>& toolchain) {
  BenchRow row;
  row.problem = evaluation.problem;
  row.kernel = evaluation.kernel;
  row.sha256 = evaluation.sha256;
  row.status = evaluation.status;
  row.message = evaluation.message;
  row.badges = evaluation.earned_badges();
  row.badge_notes = evaluation.badge_notes;
  row.measured = today();
  row.ceiling_ns = evaluation.ceiling_ns;
  row.speed_of_light_ns = evaluation.speed_of_light_ns;
  row.witnesses = evaluation.witnesses;
  row.noise_ppm = evaluation.reference_noise_ppm;
  row.conditions = evaluation.conditions;
  row.resources = evaluation.resources;
  row.evidence = evaluation.evidence;
  row.harness = evaluation.harness;
  row.toolchain = toolchain;
  row.ceilings = evaluation.ceilings;
  row.repeated_headline_ns = evaluation.repeated_headline_ns;
  if (evaluation.timing) {
    row.median_ns = evaluation.timing->median_ns;
    row.low_ns = evaluation.timing->low_ns;
    row.high_ns = evaluation.timing->high_ns;
    row.samples_ns = evaluation.timing->samples_ns;
  }
  if (evaluation.errors) {
    row.max_error = error_text(evaluation.errors->max_abs);
    row.rms_error = error_text(evaluation.errors->rms);
    row.truth_rms = error_text(evaluation.errors->truth_rms);
    row.tolerance_share = share_text(evaluation.errors->worst_tolerance_ratio);
  }
  const ReferenceResult* headline = evaluation.headline();
  if (headline && headline->errors) {
    row.library_max_error = error_text(headline->errors->max_abs);
    row.library_rms_error = error_text(headline->errors->rms);
  }
  for (const ReferenceResult& reference : evaluation.references) {
    row.references.push_back({reference.id, reference.details, reference.unavailable,
                              reference.timing.median_ns,
                              reference.percent_of_reference.value_or(Percent{}),
                              reference.timing.samples_ns, reference.kernel_samples_ns});
  }
  return row;
}

std::string present_judge(const BenchRow& row) {
  std::vector<std::string> references;
  for (const RecordedReference& one : row.references) references.push_back(one.id);
  return harness_digest(row.problem, references);
}

void note_device(Bench& bench, const EvaluationReport& report) {
  if (!report.device) return;
  const DeviceProperties& device = *report.device;
  bench.device_name = device.name;
  bench.sm = std::to_string(device.major) + "." + std::to_string(device.minor);
  bench.multiprocessors = device.multiprocessors;
  bench.l2_bytes = device.l2_bytes;
  bench.clock_khz = device.clock_khz;
  bench.memory_clock_khz = device.memory_clock_khz;
  bench.memory_bus_bits = device.memory_bus_bits;
}

void note_device(Bench& bench, const Bench& from) {
  bench.device_name = from.device_name;
  // A search's record need not know all of its device.
  const auto take = [](auto& into, const auto& value) {
    if (value != std::decay_t<decltype(value)>{}) into = value;
  };
  take(bench.sm, from.sm);
  take(bench.multiprocessors, from.multiprocessors);
  take(bench.l2_bytes, from.l2_bytes);
  take(bench.clock_khz, from.clock_khz);
  take(bench.memory_clock_khz, from.memory_clock_khz);
  take(bench.memory_bus_bits, from.memory_bus_bits);
}

DeviceProperties device_of(const Bench& bench) {
  DeviceProperties device;
  device.name = bench.device_name;
  // "9.0"; another text is the capability of no chip.
  std::istringstream capability(bench.sm);
  char point = '\0';
  capability >> device.major >> point >> device.minor;
  device.multiprocessors = bench.multiprocessors;
  device.l2_bytes = bench.l2_bytes;
  device.clock_khz = bench.clock_khz;
  device.memory_clock_khz = bench.memory_clock_khz;
  device.memory_bus_bits = bench.memory_bus_bits;
  return device;
}

void summarise_rows(Bench& bench) {
  bench.toolchain.clear();
  bench.ceilings = {};
  std::map<std::string, std::set<std::string>> versions;
  for (const BenchRow& row : bench.rows) {
    for (const auto& [component, version] : row.toolchain) versions[component].insert(version);
    // The best seen in any: a ceiling is what the device can do, not what it did on average.
    bench.ceilings.copy_bytes_per_s =
        std::max(bench.ceilings.copy_bytes_per_s, row.ceilings.copy_bytes_per_s);
    bench.ceilings.fp16_flops_per_s =
        std::max(bench.ceilings.fp16_flops_per_s, row.ceilings.fp16_flops_per_s);
  }
  for (const auto& [component, all_versions] : versions) {
    bench.toolchain[component] =
        joined(std::vector<std::string>(all_versions.begin(), all_versions.end()), " and ");
  }
}

boost::json::object to_json(const Bench& bench) {
  boost::json::array rows;
  for (const BenchRow& row : bench.rows) rows.push_back(to_json(row));
  return {{"schema", schema},
          {"device",
           {{"name", bench.device_name},
            {"sm", bench.sm},
            {"multiprocessors", bench.multiprocessors},
            {"l2_bytes", bench.l2_bytes},
            {"clock_khz", bench.clock_khz},
            {"memory_clock_khz", bench.memory_clock_khz},
            {"memory_bus_bits", bench.memory_bus_bits}}},
          {"toolchain", boost::json::value_from(bench.toolchain)},
          {"ceilings", rekernel::to_json(bench.ceilings)},
          {"rows", std::move(rows)}};
}

Result<Bench> bench_from_json(const boost::json::value& json, const std::string& where) {
  JsonReader reader(where, json);
  Bench bench;
  JsonReader found = reader.required("schema");
  if (found.raw() != schema) {
    found.expect(std::to_string(schema) +
                 " (remove a file of another schema, and measure anew: `rekernel bench --record`)");
  }
  JsonReader device = reader.required("device");
  bench.device_name = device.required("name").string();
  bench.sm = device.required("sm").string();
  bench.multiprocessors = static_cast<int>(device.required("multiprocessors").integer(0, 1 << 20));
  bench.l2_bytes = device.required("l2_bytes").integer(0, most);
  bench.clock_khz = device.required("clock_khz").integer(0, most);
  bench.memory_clock_khz = device.required("memory_clock_khz").integer(0, most);
  bench.memory_bus_bits = device.required("memory_bus_bits").integer(0, most);
  device.no_other_keys();
  bench.toolchain = reader.required("toolchain").string_map();
  bench.ceilings = ceilings_from_json(reader.required("ceilings"));
  for (JsonReader& row : reader.required("rows").array()) {
    bench.rows.push_back(read_bench_row(row));
    if (!bench.rows.back().complete()) {
      row.fail("samples, evidence, ceilings, toolchain or harness are missing");
    }
  }
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return bench;
}

Result<Bench> read_bench(const std::filesystem::path& path) {
  Result<boost::json::value> json = read_json_file(path);
  if (!json) return json.error();
  return bench_from_json(*json, path.string());
}

Result<Bench> load_bench(const std::filesystem::path& path) {
  Result<Bench> bench = read_bench(path);
  if (!bench) return bench;
  std::vector<std::string> found = contradictions(*bench, path.string());
  const std::filesystem::path place = bench_path("", bench->device_name);
  const bool recorded = path.parent_path().parent_path().filename() == "results";
  if (recorded && path.parent_path().filename() != place.parent_path().filename()) {
    found.push_back(path.string() + ": device.name: '" + bench->device_name + "' belongs into " +
                    place.parent_path().string());
  }
  if (!found.empty()) return Error{joined(found, "\n")};
  return bench;
}

void merge(Bench& into, const Bench& from) {
  note_device(into, from);
  for (const BenchRow& row : from.rows) {
    auto same = std::find_if(into.rows.begin(), into.rows.end(), [&](const BenchRow& old) {
      return old.problem == row.problem && old.kernel == row.kernel;
    });
    if (same != into.rows.end()) {
      *same = row;
    } else {
      into.rows.push_back(row);
    }
  }
  std::stable_sort(into.rows.begin(), into.rows.end(), [](const BenchRow& a, const BenchRow& b) {
    const int left = catalog_position(a.problem);
    const int right = catalog_position(b.problem);
    return left != right ? left < right : a.kernel < b.kernel;
  });
  summarise_rows(into);
}

std::filesystem::path bench_path(const std::filesystem::path& root,
                                 const std::string& device_name) {
  constexpr std::string_view vendor = "nvidia";
  std::string slug;
  for (char character : device_name) {
    const auto byte = static_cast<unsigned char>(character);
    if (std::isalnum(byte)) {
      slug += static_cast<char>(std::tolower(byte));
    } else if (!slug.empty() && slug.back() != '_') {
      slug += '_';
    }
    if (slug == vendor) slug.clear();
  }
  if (slug.empty()) slug = "unknown";
  return root / "results" / slug / "bench.json";
}

std::vector<std::filesystem::path> recorded_files(const std::filesystem::path& root,
                                                  const char* name) {
  std::vector<std::filesystem::path> paths;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root / "results", ignored)) {
    const std::filesystem::path path = entry.path() / name;
    if (std::filesystem::is_regular_file(path, ignored)) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::filesystem::path> recorded_benches(const std::filesystem::path& root) {
  return recorded_files(root, "bench.json");
}

std::string error_text(double value) { return printed("%.1e", value); }

std::string share_text(double value) { return printed("%.4g", value); }

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

}  // namespace rekernel

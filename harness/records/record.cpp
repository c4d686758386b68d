#include "harness/records/record.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <cmath>
#include <ctime>
#include <set>
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/harness_digest.h"
#include "harness/base/json_fields.h"
#include "harness/base/text.h"
#include "harness/problems/catalog.h"
#include "harness/records/contradictions.h"

namespace rekernel {

namespace {

namespace bench_json {

// The words of field lists, in a namespace that has nothing else.
// NOLINTNEXTLINE(google-build-using-namespace)
using namespace json_fields;

/// Percentages are recorded to one decimal. The interval around one can reach below 0; the bounds
/// keep the decimal exact.
struct OneDecimal {
  boost::json::value write(double value) const { return std::round(value * 10.0) / 10.0; }
  void read(JsonReader reader, double& into) const {
    constexpr double max_percent = 1e9;
    into = reader.real();
    if (!(std::abs(into) <= max_percent)) reader.expect("a percentage of at most 1000000000");
  }
};

constexpr List samples{Whole{1}, 1};
constexpr NumberText share{"%.4g"};

template <class Struct>
constexpr auto samples_field(const char* key, std::vector<std::int64_t> Struct::*member) {
  return field(key, member, samples, unless_empty);
}

constexpr Part percent_of_it{[](boost::json::object& json, const RecordedReference& reference) {
                               json["percent"] = OneDecimal().write(reference.percent.value);
                               json["low"] = OneDecimal().write(reference.percent.low);
                               json["high"] = OneDecimal().write(reference.percent.high);
                             },
                             [](JsonReader& reader, RecordedReference& reference) {
                               OneDecimal().read(reader.required("percent"),
                                                 reference.percent.value);
                               OneDecimal().read(reader.required("low"), reference.percent.low);
                               OneDecimal().read(reader.required("high"), reference.percent.high);
                             }};

constexpr std::tuple timed_reference_fields{
    field("median_ns", &RecordedReference::median_ns, count), percent_of_it,
    field("details", &RecordedReference::details, text, unless_empty),
    samples_field("samples_ns", &RecordedReference::samples_ns),
    samples_field("kernel_samples_ns", &RecordedReference::kernel_samples_ns)};

/// By their ids; of those without a time, why.
struct References {
  boost::json::value write(const std::vector<RecordedReference>& references) const {
    boost::json::object json;
    for (const RecordedReference& one : references) {
      json[one.id] = one.unavailable.empty()
                         ? object_of(one, timed_reference_fields)
                         : boost::json::object{{"unavailable", one.unavailable}};
    }
    return json;
  }
  void read(JsonReader reader, std::vector<RecordedReference>& into) const {
    for (auto& [id, reference] : reader.entries()) {
      RecordedReference& one = into.emplace_back();
      one.id = id;
      one.unavailable = reference.optional_string("unavailable");
      if (one.unavailable.empty()) {
        read_fields(reference, one, timed_reference_fields);
      } else {
        reference.no_other_keys();
      }
    }
  }
};

constexpr std::tuple evidence_fields{
    field("strict_share", &BadgeEvidence::strict_share, share, unless_empty),
    field("stress", &BadgeEvidence::stress, Entries{share}),
    field("digests", &BadgeEvidence::digests, DigestsFormat{}),
    field("other_sizes", &BadgeEvidence::other_sizes, List{By{&size_result_from_json}, 1, 64},
          unless_empty)};

/// Nothing where none were measured.
constexpr Part own_ceilings{[](boost::json::object& json, const BenchRow& row) {
                              if (row.ceilings.copy_bytes_per_s > 0)
                                json["ceilings"] = rekernel::to_json(row.ceilings);
                            },
                            [](JsonReader& reader, BenchRow& row) {
                              if (auto ceilings = reader.optional("ceilings"))
                                row.ceilings = ceilings_from_json(*ceilings);
                            }};

/// What stands in the first reference, once more.
constexpr Part repeated_headline{
    [](boost::json::object& json, const BenchRow& row) {
      const RecordedReference* headline = row.headline();
      if (!headline) return;
      json["percent_of_reference"] = {{"headline", OneDecimal().write(headline->percent.value)},
                                      {"low", OneDecimal().write(headline->percent.low)},
                                      {"high", OneDecimal().write(headline->percent.high)},
                                      {"reference", headline->id}};
    },
    [](JsonReader& reader, BenchRow& row) {
      auto derived = reader.optional("percent_of_reference");
      if (!derived) return;
      const RecordedReference* headline = row.headline();
      const std::string reference = derived->required("reference").string();
      Percent percent;
      OneDecimal().read(derived->required("headline"), percent.value);
      OneDecimal().read(derived->required("low"), percent.low);
      OneDecimal().read(derived->required("high"), percent.high);
      if (!headline || reference != headline->id || percent.value != headline->percent.value ||
          percent.low != headline->percent.low || percent.high != headline->percent.high) {
        derived->fail("differs from the row's first reference");
      }
    }};

constexpr std::size_t max_witnesses = 16;

constexpr std::tuple row_fields{
    field("problem", &BenchRow::problem, text),
    field("kernel", &BenchRow::kernel, text),
    field("sha256", &BenchRow::sha256, text),
    field("status", &BenchRow::status, Named<Status>{to_string, status_from_string, "a status"}),
    field("badges", &BenchRow::badges, By{&badges_from_json}),
    field("measured", &BenchRow::measured, text),
    field("median_ns", &BenchRow::median_ns, count),
    field("low_ns", &BenchRow::low_ns, count),
    field("high_ns", &BenchRow::high_ns, count),
    field("ceiling_ns", &BenchRow::ceiling_ns, count),
    field("speed_of_light_ns", &BenchRow::speed_of_light_ns, count),
    field("message", &BenchRow::message, text, unless_empty),
    field("badge_notes", &BenchRow::badge_notes, text, unless_empty),
    field("stress_left_out", &BenchRow::stress_left_out, List{Text{256}, 0, 64}, unless_empty),
    field("max_error", &BenchRow::max_error, text),
    field("rms_error", &BenchRow::rms_error, text),
    field("library_max_error", &BenchRow::library_max_error, text),
    field("library_rms_error", &BenchRow::library_rms_error, text),
    field("truth_rms", &BenchRow::truth_rms, text, unless_empty),
    field("tolerance_share", &BenchRow::tolerance_share, text, unless_empty),
    field("noise_ppm", &BenchRow::noise_ppm, count),
    samples_field("samples_ns", &BenchRow::samples_ns),
    samples_field("repeated_headline_ns", &BenchRow::repeated_headline_ns),
    field("witnesses", &BenchRow::witnesses, List{By{&witness_from_json}, 1, max_witnesses},
          unless_empty),
    field("resources", &BenchRow::resources, List{By{&resources_from_json}}, unless_empty),
    field("conditions", &BenchRow::conditions, By{&conditions_from_json}),
    field("evidence", &BenchRow::evidence, Nested{evidence_fields}, unless_empty),
    field("harness", &BenchRow::harness, text, unless_empty),
    field("toolchain", &BenchRow::toolchain, TextMap{256}, unless_empty),
    own_ceilings,
    field("signature", &BenchRow::signature, text, unless_empty),
    field("references", &BenchRow::references, References{}),
    repeated_headline};

struct CompleteRow {
  boost::json::value write(const BenchRow& row) const { return object_of(row, row_fields); }
  void read(JsonReader reader, BenchRow& into) const {
    into = read_object<BenchRow>(reader, row_fields);
    if (!into.complete()) {
      reader.fail("samples, evidence, ceilings, toolchain or harness are missing");
    }
  }
};

constexpr std::int64_t schema_number = 3;

constexpr Part bench_schema{
    [](boost::json::object& json, const Bench&) { json["schema"] = schema_number; },
    [](JsonReader& reader, const Bench&) {
      JsonReader found = reader.required("schema");
      if (found.raw() == schema_number) return;
      found.expect(
          std::to_string(schema_number) +
          " (remove a file of another schema, and measure again: `rekernel bench --record`)");
    }};

constexpr std::tuple device_fields{
    field("name", &Bench::device_name, text),
    field("sm", &Bench::sm, text),
    field("multiprocessors", &Bench::multiprocessors, Whole{0, 1 << 20}),
    field("l2_bytes", &Bench::l2_bytes, count),
    field("clock_khz", &Bench::clock_khz, count),
    field("memory_clock_khz", &Bench::memory_clock_khz, count),
    field("memory_bus_bits", &Bench::memory_bus_bits, count)};

constexpr std::tuple bench_fields{bench_schema, Within{"device", device_fields},
                                  field("toolchain", &Bench::toolchain, TextMap{}),
                                  field("ceilings", &Bench::ceilings, By{&ceilings_from_json}),
                                  field("rows", &Bench::rows, List{CompleteRow{}})};

}  // namespace bench_json

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
  row.stress_left_out = evaluation.stress_left_out;
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
  return harness_digest(digest_of_problem(row.problem), references);
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
  return object_of(bench, bench_json::bench_fields);
}

Result<Bench> bench_from_json(const boost::json::value& json, const std::string& where) {
  JsonReader reader(where, json);
  Bench bench = read_object<Bench>(reader, bench_json::bench_fields);
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

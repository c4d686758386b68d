#include "harness/evaluation/evaluation.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "harness/base/json_fields.h"
#include "harness/problems/sizes.h"

namespace rekernel {

namespace {

namespace evaluation_json {

// The words of field lists, in a namespace that has nothing else.
// NOLINTNEXTLINE(google-build-using-namespace)
using namespace json_fields;

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();

constexpr std::tuple error_fields{
    field("max_abs", &ErrorStats::max_abs, real),
    field("rms", &ErrorStats::rms, real),
    field("truth_rms", &ErrorStats::truth_rms, real),
    field("worst_tolerance_ratio", &ErrorStats::worst_tolerance_ratio, real),
    field("worst_strict_ratio", &ErrorStats::worst_strict_ratio, real),
    field("failing", &ErrorStats::failing, count),
    field("unwritten", &ErrorStats::unwritten, count),
    field("first_failing", &ErrorStats::first_failing, Whole{-1, int64_max}),
    field("first_value", &ErrorStats::first_value, real),
    field("first_truth", &ErrorStats::first_truth, real)};

constexpr std::tuple timing_fields{field("median_ns", &Timing::median_ns, count),
                                   field("low_ns", &Timing::low_ns, count),
                                   field("high_ns", &Timing::high_ns, count),
                                   field("samples_ns", &Timing::samples_ns, List{count})};

constexpr std::tuple percent_fields{field("value", &Percent::value, real),
                                    field("low", &Percent::low, real),
                                    field("high", &Percent::high, real)};

constexpr List samples{count, 1};

constexpr std::tuple reference_fields{
    field("id", &ReferenceResult::id, text),
    field("details", &ReferenceResult::details, text),
    field("unavailable", &ReferenceResult::unavailable, text),
    field("timing", &ReferenceResult::timing, Nested{timing_fields}),
    field("errors", &ReferenceResult::errors, Nested{error_fields}, unless_empty),
    field("percent", &ReferenceResult::percent_of_reference, Nested{percent_fields}, unless_empty),
    field("kernel_samples_ns", &ReferenceResult::kernel_samples_ns, samples, unless_empty)};

struct SizesFormat {
  boost::json::value write(const Sizes& sizes) const { return rekernel::to_json(sizes); }
  void read(JsonReader reader, Sizes& into) const { into = sizes_from_json(std::move(reader)); }
};

/// Recordings of searches keep no numbers that are not whole.
constexpr std::tuple size_fields{
    field("sizes", &SizeResult::sizes, SizesFormat{}),
    field("status", &SizeResult::status, Named<Status>{to_string, status_from_string, "a status"}),
    field("tolerance_share", &SizeResult::tolerance_share, NumberText{"%.4g"}),
    field("median_ns", &SizeResult::median_ns, count, unless_empty)};

constexpr std::tuple evidence_fields{
    field("stress", &BadgeEvidence::stress, Entries{real}),
    field("digests", &BadgeEvidence::digests, DigestsFormat{}),
    field("strict_share", &BadgeEvidence::strict_share, real, unless_empty),
    field("other_sizes", &BadgeEvidence::other_sizes, List{Nested{size_fields}, 1, 64},
          unless_empty)};

constexpr std::tuple resource_fields{
    field("name", &KernelResources::name, text),
    field("registers", &KernelResources::registers, Whole{0, 1 << 16}),
    field("static_shared_bytes", &KernelResources::static_shared_bytes, count),
    field("stack_bytes", &KernelResources::stack_bytes, count),
    field("spill_store_bytes", &KernelResources::spill_store_bytes, count),
    field("spill_load_bytes", &KernelResources::spill_load_bytes, count)};

constexpr std::tuple ceiling_fields{field("copy_bytes_per_s", &Ceilings::copy_bytes_per_s, count),
                                    field("fp16_flops_per_s", &Ceilings::fp16_flops_per_s, count)};

constexpr std::tuple condition_fields{
    field("sm_clock_mhz", &GpuConditions::sm_clock_mhz, Whole{0, 1 << 20}),
    field("temperature_c", &GpuConditions::temperature_c, Whole{-273, 1000}),
    field("power_w", &GpuConditions::power_w, Whole{0, 1 << 20}),
    field("throttle_reasons", &GpuConditions::throttle_reasons, Whole{int64_min, int64_max}),
    field("rejected_samples", &GpuConditions::rejected_samples, Whole{0, 1 << 20}),
    field("graphics", &GpuConditions::graphics, List{Text{256}, 0, 64}, unless_empty)};

constexpr std::tuple noise_run_fields{field("first_ns", &NoiseRun::first_ns, samples),
                                      field("second_ns", &NoiseRun::second_ns, samples)};

/// Up to 2⁶⁴ − 1, of which JSON's readers take half for signed.
struct Seed {
  boost::json::value write(std::uint64_t seed) const { return seed; }
  void read(JsonReader reader, std::uint64_t& into) const {
    const boost::json::value& raw = reader.raw();
    into = raw.is_uint64() ? raw.get_uint64()
                           : static_cast<std::uint64_t>(reader.integer(0, int64_max));
  }
};

constexpr Part badge_flags{[](boost::json::object& json, const Evaluation& evaluation) {
                             for (const BadgeDescription& one : badge_table) {
                               json[one.name] = evaluation.badges.has(one.badge);
                             }
                           },
                           [](JsonReader& reader, Evaluation& evaluation) {
                             for (const BadgeDescription& one : badge_table) {
                               if (!one.in_every_record && !reader.has(one.name)) continue;
                               evaluation.badges.set(one.badge,
                                                     reader.required(one.name).boolean());
                             }
                           }};

/// Until there were two bounds, the ceiling was called the floor.
constexpr Part ceiling_time{[](boost::json::object& json, const Evaluation& evaluation) {
                              json["ceiling_ns"] = evaluation.ceiling_ns;
                            },
                            [](JsonReader& reader, Evaluation& evaluation) {
                              const char* key = reader.has("floor_ns") ? "floor_ns" : "ceiling_ns";
                              evaluation.ceiling_ns = reader.required(key).integer(0, int64_max);
                            }};

constexpr Part measured_ceilings{[](boost::json::object& json, const Evaluation& evaluation) {
                                   if (evaluation.ceilings.copy_bytes_per_s > 0)
                                     json["ceilings"] = to_json(evaluation.ceilings);
                                 },
                                 [](JsonReader& reader, Evaluation& evaluation) {
                                   if (auto ceilings = reader.optional("ceilings")) {
                                     evaluation.ceilings = ceilings_from_json(*ceilings);
                                   }
                                 }};

struct Witnesses {
  List<By<Witness>> both{{&witness_from_json}, 1, 2};

  boost::json::value write(const std::vector<Witness>& witnesses) const {
    return both.write(witnesses);
  }
  void read(JsonReader reader, std::vector<Witness>& into) const {
    // The second process took no times when there was one witness.
    if (reader.is_object()) {
      into = {witness_from_json(reader)};
    } else {
      both.read(std::move(reader), into);
    }
  }
};

constexpr std::tuple evaluation_fields{
    field("problem", &Evaluation::problem, text), field("kernel", &Evaluation::kernel, text),
    field("sha256", &Evaluation::sha256, text),
    field("status", &Evaluation::status, Named<Status>{to_string, status_from_string, "a status"}),
    field("message", &Evaluation::message, text), field("target", &Evaluation::target, text),
    field("resources", &Evaluation::resources, List{Nested{resource_fields}}),
    field("compile_log", &Evaluation::compile_log, text),
    field("seeds", &Evaluation::seeds, List{Seed{}}), badge_flags,
    field("badge_notes", &Evaluation::badge_notes, text), ceiling_time,
    field("speed_of_light_ns", &Evaluation::speed_of_light_ns, count, newer),
    field("references", &Evaluation::references, List{Nested{reference_fields}}),
    field("reference_noise_ppm", &Evaluation::reference_noise_ppm, count),
    field("conditions", &Evaluation::conditions, Nested{condition_fields}),
    field("split_ns", &Evaluation::split_ns, Entries{count}),
    field("check", &Evaluation::check, text, unless_empty),
    field("libraries", &Evaluation::libraries, List{Text{64}, 0, 64}, unless_empty),
    field("errors", &Evaluation::errors, Nested{error_fields}, unless_empty),
    field("timing", &Evaluation::timing, Nested{timing_fields}, unless_empty),
    field("witness", &Evaluation::witnesses, Witnesses{}, unless_empty),
    // What follows is in no evaluation that was recorded before it was kept.
    field("harness", &Evaluation::harness, Text{64}, unless_empty),
    field("evidence", &Evaluation::evidence, Nested{evidence_fields}, unless_empty),
    field("stress_left_out", &Evaluation::stress_left_out, List{Text{256}, 0, 64}, unless_empty),
    measured_ceilings,
    field("repeated_headline_ns", &Evaluation::repeated_headline_ns, samples, unless_empty)};

}  // namespace evaluation_json

}  // namespace

boost::json::value DigestsFormat::write(
    const std::vector<std::vector<std::string>>& digests) const {
  return boost::json::value_from(digests);
}

void DigestsFormat::read(JsonReader reader, std::vector<std::vector<std::string>>& into) const {
  constexpr std::size_t max_digests = 4096;
  constexpr std::size_t digest_digits = 16;
  const boost::json::array* all = reader.raw().if_array();
  // Once, one input alone was run again.
  if (all && !all->empty() && all->front().is_string()) {
    into = {reader.strings(max_digests, digest_digits)};
    return;
  }
  for (JsonReader& group : reader.array(0, max_digests)) {
    into.push_back(group.strings(max_digests, digest_digits));
  }
}

bool BadgeEvidence::repeats_agree() const {
  return std::all_of(digests.begin(), digests.end(), [](const std::vector<std::string>& group) {
    return std::equal(group.begin() + (group.empty() ? 0 : 1), group.end(), group.begin());
  });
}

boost::json::object to_json(const SizeResult& result) {
  return object_of(result, evaluation_json::size_fields);
}

SizeResult size_result_from_json(JsonReader reader) {
  return read_object<SizeResult>(std::move(reader), evaluation_json::size_fields);
}

boost::json::object to_json(const KernelResources& kernel) {
  return object_of(kernel, evaluation_json::resource_fields);
}

boost::json::array to_json(const std::vector<KernelResources>& kernels) {
  return json_fields::List{json_fields::Nested{evaluation_json::resource_fields}}
      .write(kernels)
      .get_array();
}

KernelResources resources_from_json(JsonReader reader) {
  return read_object<KernelResources>(std::move(reader), evaluation_json::resource_fields);
}

boost::json::object to_json(const Ceilings& ceilings) {
  return object_of(ceilings, evaluation_json::ceiling_fields);
}

Ceilings ceilings_from_json(JsonReader reader) {
  return read_object<Ceilings>(std::move(reader), evaluation_json::ceiling_fields);
}

boost::json::object to_json(const GpuConditions& conditions) {
  return object_of(conditions, evaluation_json::condition_fields);
}

GpuConditions conditions_from_json(JsonReader reader) {
  return read_object<GpuConditions>(std::move(reader), evaluation_json::condition_fields);
}

boost::json::object to_json(const NoiseRun& run) {
  return object_of(run, evaluation_json::noise_run_fields);
}

NoiseRun noise_run_from_json(JsonReader reader) {
  return read_object<NoiseRun>(std::move(reader), evaluation_json::noise_run_fields);
}

Badges Evaluation::earned_badges() const { return status == Status::passed ? badges : Badges(); }

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
  return object_of(evaluation, evaluation_json::evaluation_fields);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): readers are handed on
Result<Evaluation> evaluation_from_json(JsonReader reader) {
  Evaluation evaluation = read_object<Evaluation>(reader, evaluation_json::evaluation_fields);
  if (auto error = reader.error()) return *error;
  return evaluation;
}

}  // namespace rekernel

#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/evaluation.h"
#include "harness/evaluation/report.h"
#include "harness/gpu/cuda.h"
#include "ops/result.h"

namespace rekernel {

/// A reference's time beside one kernel, as recorded.
struct RecordedReference {
  std::string id;
  std::string details;
  std::string unavailable;  ///< why there is no time; empty if there is
  std::int64_t median_ns = 0;
  Percent percent;
  std::vector<std::int64_t> samples_ns;
  /// The kernel's times beside a reference of another process; empty: the row's samples_ns.
  std::vector<std::int64_t> kernel_samples_ns;
};

/// One kernel's line in a bench file.
struct BenchRow {
  std::string problem;
  std::string kernel;
  std::string sha256;
  Status status = Status::crashed;
  std::string message;
  Badges badges;
  std::string badge_notes;
  /// Stress cases whose truth is not finite everywhere: nothing was judged on them.
  std::vector<std::string> stress_left_out;
  std::string measured;  ///< date, YYYY-MM-DD
  std::int64_t median_ns = 0;
  std::int64_t low_ns = 0;
  std::int64_t high_ns = 0;
  std::int64_t ceiling_ns = 0;         ///< of the row's own ceilings
  std::int64_t speed_of_light_ns = 0;  ///< of the device; 0: no bound
  std::string max_error;               ///< largest |error| over the seeds, "1.2e-06"
  std::string rms_error;
  std::string library_max_error;  ///< the same of the headline reference
  std::string library_rms_error;
  std::string truth_rms;
  std::string tolerance_share;  ///< largest |error| ÷ tolerance over the seeds
  std::int64_t noise_ppm = 0;   ///< the headline against itself
  std::vector<std::int64_t> repeated_headline_ns;
  GpuConditions conditions;
  std::vector<RecordedReference> references;  ///< the headline first
  std::vector<std::int64_t> samples_ns;       ///< every timed run
  /// The same runs, by the referee's clock: one for each process of the candidate. None in rows
  /// from before they were kept, whose `harness` is no row digest.
  std::vector<Witness> witnesses;
  std::vector<KernelResources> resources;  ///< of the plan's kernels
  std::optional<BadgeEvidence> evidence;
  std::string harness;                           ///< harness_digest() of what judged it
  std::map<std::string, std::string> toolchain;  ///< component → version
  Ceilings ceilings;                             ///< of the run that took the row's times
  std::string signature;  ///< of who answers for it, as one line of base64; empty: nobody signed
  std::string signer = "unsigned";  ///< not recorded: see identify_signers()

  const RecordedReference* headline() const;
  const RecordedReference* find(std::string_view id) const;
  /// Whether it holds what its summaries can be made from again.
  bool complete() const;
};

/// A bench run on one device: `bench --json` and results/<gpu>/bench.json, schema 3.
struct Bench {
  std::string device_name;
  std::string sm;
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t clock_khz = 0;
  std::int64_t memory_clock_khz = 0;
  std::int64_t memory_bus_bits = 0;
  std::map<std::string, std::string> toolchain;  ///< component → version; of all rows together
  Ceilings ceilings;                             ///< the best that any row saw
  std::vector<BenchRow> rows;
};

/// The row for an evaluation that was made today, with these versions of what took part.
BenchRow bench_row(const Evaluation& evaluation,
                   const std::map<std::string, std::string>& toolchain);

/// The digest that a row with this problem and these references gets of this program's sources.
std::string present_judge(const BenchRow& row);

/// Takes over the device of a report, or of another bench.
void note_device(Bench& bench, const EvaluationReport& report);
void note_device(Bench& bench, const Bench& from);
/// What a bench tells of its device, as the driver tells it.
DeviceProperties device_of(const Bench& bench);
/// Makes what the file says of all rows from what each says.
void summarise_rows(Bench& bench);

boost::json::object to_json(const Bench& bench);
Result<Bench> bench_from_json(const boost::json::value& json, const std::string& where);
/// As it is, whether or not it contradicts itself.
Result<Bench> read_bench(const std::filesystem::path& path);
/// Refuses a record that contradicts itself; the error's message has a line for each contradiction.
Result<Bench> load_bench(const std::filesystem::path& path);

/// Replaces the rows of `into` that `from` measured again, adds those that are new, keeps the rest.
/// Rows end up in the catalog's order, then by kernel name.
void merge(Bench& into, const Bench& from);

/// results/<gpu>/bench.json for a device name: "NVIDIA H200" → "h200".
std::filesystem::path bench_path(const std::filesystem::path& root, const std::string& device_name);

/// Every results/*/`name`, sorted.
std::vector<std::filesystem::path> recorded_files(const std::filesystem::path& root,
                                                  const char* name);
/// Beside bench.json, in the same format: the slow candidate of each problem, beside its
/// references.
inline constexpr const char* slow_file = "slow.json";
inline constexpr const char* slow_name = "slow";

/// Every results/*/bench.json, sorted.
std::vector<std::filesystem::path> recorded_benches(const std::filesystem::path& root);

/// "9.2e-04": errors are recorded as text, since doubles do not survive every JSON library.
std::string error_text(double value);
/// "0.01234": a share of what is allowed.
std::string share_text(double value);

/// Today in UTC, YYYY-MM-DD.
std::string today();

}  // namespace rekernel

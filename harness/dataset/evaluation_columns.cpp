#include "harness/dataset/evaluation_columns.h"

#include <boost/json.hpp>
#include <cstdlib>

#include "harness/base/text.h"
#include "harness/dataset/modules.h"
#include "harness/dataset/rows.h"
#include "harness/problems/catalog.h"

namespace rekernel {

namespace json = boost::json;

namespace {

json::object reference_columns(const std::string& id, const std::string& details,
                               std::int64_t median_ns, const std::optional<Percent>& percent,
                               const std::vector<std::int64_t>& samples_ns,
                               const std::vector<std::int64_t>& kernel_samples_ns) {
  json::object column{{"id", id},
                      {"details", details},
                      {"median_ns", median_ns},
                      {"samples_ns", json::value_from(samples_ns)},
                      {"kernel_samples_ns", json::value_from(kernel_samples_ns)}};
  if (percent) {
    column["percent"] = number_column(percent->value);
    column["percent_low"] = number_column(percent->low);
    column["percent_high"] = number_column(percent->high);
  }
  return column;
}

/// The headline's figures once more, where they are found without a list.
void add_headline(json::object& row, const json::array& references) {
  if (references.empty()) return;
  const json::object& headline = references.front().get_object();
  row["reference"] = headline.at("id");
  row["reference_ns"] = headline.at("median_ns");
  row["reference_samples_ns"] = headline.at("samples_ns");
  if (!headline.contains("percent")) return;
  row["percent_of_reference"] = headline.at("percent");
  row["percent_low"] = headline.at("percent_low");
  row["percent_high"] = headline.at("percent_high");
}

json::array resource_columns(const std::vector<KernelResources>& kernels) {
  json::array columns;
  for (const KernelResources& kernel : kernels) {
    columns.push_back({{"name", kernel.name},
                       {"registers", kernel.registers},
                       {"static_shared_bytes", kernel.static_shared_bytes},
                       {"stack_bytes", kernel.stack_bytes},
                       {"spill_store_bytes", kernel.spill_store_bytes},
                       {"spill_load_bytes", kernel.spill_load_bytes}});
  }
  return columns;
}

/// "1.2e-06", as records keep it; null for none.
json::value recorded_number(const std::string& text) {
  if (text.empty()) return nullptr;
  return number_column(std::strtod(text.c_str(), nullptr));
}

json::value known(std::int64_t nanoseconds) {
  if (nanoseconds > 0) return nanoseconds;
  return nullptr;
}

}  // namespace

void add_problem_columns(json::object& row, const std::string& id) {
  const Problem* problem = find_problem(id);
  if (!problem) return;
  row["problem_title"] = problem->title;
  row["problem_definition"] = json::value_from(problem->formula);
  row["problem_file"] = problem->text;
}

void add_candidate_columns(json::object& row, const Candidate& candidate) {
  row["idea"] = candidate.idea;
  row["arch"] = to_string(candidate.arch);
  row["sha256"] = candidate_sha256(candidate);
  json::array modules = module_columns(candidate.program);
  if (modules.empty()) row["code"] = candidate.program.source;
  row["code_bytes"] = candidate.program.source.size();
  row["modules"] = std::move(modules);
  row["plan"] = candidate_json(candidate);
}

void add_evaluation_columns(json::object& row, const Evaluation& evaluation) {
  row["status"] = to_string(evaluation.status);
  row["message"] = evaluation.message;
  row["check"] = evaluation.check;
  row["badges"] = json::value_from(evaluation.earned_badges().names());
  row["badge_notes"] = evaluation.badge_notes;
  row["target"] = evaluation.target;
  row["judge"] = evaluation.harness;
  row["compile_log"] = evaluation.compile_log;
  row["resources"] = resource_columns(evaluation.resources);
  if (evaluation.errors) {
    row["errors"] = {{"max_abs", number_column(evaluation.errors->max_abs)},
                     {"rms", number_column(evaluation.errors->rms)},
                     {"truth_rms", number_column(evaluation.errors->truth_rms)},
                     {"tolerance_share", number_column(evaluation.errors->worst_tolerance_ratio)}};
  }
  if (evaluation.timing) {
    row["median_ns"] = evaluation.timing->median_ns;
    row["low_ns"] = evaluation.timing->low_ns;
    row["high_ns"] = evaluation.timing->high_ns;
    row["samples_ns"] = json::value_from(evaluation.timing->samples_ns);
  }
  row["ceiling_ns"] = known(evaluation.ceiling_ns);
  row["speed_of_light_ns"] = known(evaluation.speed_of_light_ns);
  json::array references;
  for (const ReferenceResult& one : evaluation.references) {
    if (!one.unavailable.empty()) continue;
    references.push_back(reference_columns(one.id, one.details, one.timing.median_ns,
                                           one.percent_of_reference, one.timing.samples_ns,
                                           one.kernel_samples_ns));
  }
  add_headline(row, references);
  row["references"] = std::move(references);
  if (evaluation.reference_noise_ppm > 0) {
    row["reference_noise_ppm"] = evaluation.reference_noise_ppm;
  }
}

void add_evaluation_columns(json::object& row, const BenchRow& bench_row) {
  row["status"] = to_string(bench_row.status);
  row["message"] = bench_row.message;
  row["badges"] = json::value_from(bench_row.badges.names());
  row["badge_notes"] = bench_row.badge_notes;
  row["judge"] = bench_row.harness;
  row["measured"] = bench_row.measured;
  row["resources"] = resource_columns(bench_row.resources);
  row["errors"] = {{"max_abs", recorded_number(bench_row.max_error)},
                   {"rms", recorded_number(bench_row.rms_error)},
                   {"truth_rms", recorded_number(bench_row.truth_rms)},
                   {"tolerance_share", recorded_number(bench_row.tolerance_share)}};
  row["median_ns"] = known(bench_row.median_ns);
  row["low_ns"] = known(bench_row.low_ns);
  row["high_ns"] = known(bench_row.high_ns);
  row["samples_ns"] = json::value_from(bench_row.samples_ns);
  row["ceiling_ns"] = known(bench_row.ceiling_ns);
  row["speed_of_light_ns"] = known(bench_row.speed_of_light_ns);
  json::array references;
  for (const RecordedReference& one : bench_row.references) {
    if (!one.unavailable.empty()) continue;
    references.push_back(reference_columns(one.id, one.details, one.median_ns, one.percent,
                                           one.samples_ns, one.kernel_samples_ns));
  }
  add_headline(row, references);
  row["references"] = std::move(references);
  if (bench_row.noise_ppm > 0) row["reference_noise_ppm"] = bench_row.noise_ppm;
  std::vector<std::string> versions;
  for (const auto& [component, version] : bench_row.toolchain) {
    versions.push_back(component + " " + version);
  }
  row["toolchain"] = joined(versions);
}

}  // namespace rekernel

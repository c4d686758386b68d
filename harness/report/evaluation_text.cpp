#include "harness/report/evaluation_text.h"

#include <sstream>

#include "harness/base/text.h"
#include "harness/compile/compiler_message.h"
#include "harness/records/report.h"

namespace rekernel {

namespace {

std::string number(double value) { return printed("%.2g", value); }

void write_resources(std::ostream& out, const Evaluation& evaluation) {
  for (const KernelResources& kernel : evaluation.resources) {
    out << "  kernel " << kernel.name << ": " << kernel.registers << " registers, "
        << kernel.static_shared_bytes << " bytes of static shared memory, " << kernel.stack_bytes
        << " bytes of stack, " << kernel.spill_store_bytes + kernel.spill_load_bytes
        << " bytes of spills\n";
  }
}

void write_bound(std::ostream& out, const char* name, std::int64_t bound_ns, const Timing& timing) {
  if (bound_ns == 0 || timing.median_ns == 0) return;
  out << ", " << name << " " << milliseconds(bound_ns) << " ms ("
      << percent_text(100.0 * static_cast<double>(bound_ns) / static_cast<double>(timing.median_ns))
      << ")";
}

void write_times(std::ostream& out, const Evaluation& evaluation) {
  if (!evaluation.timing) return;
  out << "  time " << milliseconds(evaluation.timing->median_ns) << " ms (quartiles "
      << milliseconds(evaluation.timing->low_ns) << " to "
      << milliseconds(evaluation.timing->high_ns) << ")";
  write_bound(out, "ceiling", evaluation.ceiling_ns, *evaluation.timing);
  write_bound(out, "speed of light", evaluation.speed_of_light_ns, *evaluation.timing);
  out << "\n";
  for (const ReferenceResult& reference : evaluation.references) {
    if (!reference.unavailable.empty()) {
      out << "  " << reference.id << ": not available: " << reference.unavailable << "\n";
      continue;
    }
    const Percent& percent = *reference.percent_of_reference;
    out << "  " << percent_text(percent.value) << " of " << reference.id << " ("
        << percent_text(percent.low) << " to " << percent_text(percent.high) << "), "
        << milliseconds(reference.timing.median_ns) << " ms";
    if (!reference.details.empty()) out << ", " << reference.details;
    out << "\n";
  }
}

}  // namespace

std::string evaluation_text(const Evaluation& evaluation) {
  std::ostringstream out;
  out << evaluation.problem << "/" << evaluation.kernel << ": " << to_string(evaluation.status);
  out << (evaluation.message.empty() ? "\n" : ": " + told_message(evaluation.message));
  if (evaluation.status == Status::passed) {
    out << "  badges:";
    for (const std::string& badge : evaluation.earned_badges().names()) out << " " << badge;
    if (!evaluation.badge_notes.empty()) out << " (" << evaluation.badge_notes << ")";
    out << "\n";
  }
  if (evaluation.errors) {
    out << "  error over " << evaluation.seeds.size() << " seeds: max "
        << number(evaluation.errors->max_abs) << ", rms " << number(evaluation.errors->rms) << ", "
        << number(evaluation.errors->worst_tolerance_ratio) << " of the tolerance";
    const ReferenceResult* headline = evaluation.headline();
    if (headline && headline->errors) {
      out << "; " << headline->id << " max " << number(headline->errors->max_abs) << ", rms "
          << number(headline->errors->rms);
    }
    out << "\n";
  }
  if (!evaluation.libraries.empty()) {
    out << "  kernels of a library: " << joined(evaluation.libraries) << "\n";
  }
  write_resources(out, evaluation);
  write_times(out, evaluation);
  if (evaluation.evidence && !evaluation.evidence->other_sizes.empty()) {
    out << wrapped("  at other sizes " + other_sizes_text(evaluation.evidence->other_sizes),
                   page_columns, 4)
        << "\n";
  }
  out << "  split:";
  for (const auto& [phase, nanoseconds] : evaluation.split_ns) {
    out << " " << phase << " " << number(static_cast<double>(nanoseconds) / 1e9) << " s";
  }
  out << "\n";
  return std::move(out).str();
}

}  // namespace rekernel

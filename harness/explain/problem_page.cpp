#include "harness/explain/problem_page.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/candidate/candidate.h"
#include "harness/evaluation/ceilings.h"
#include "harness/evaluation/speed_of_light.h"
#include "harness/measuring/references.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"
#include "harness/report/tensor_json.h"
#include "harness/terminal/labelled.h"
#include "replay/search/fixed_texts.h"

namespace rekernel {

namespace {

/// Takes over a time that is less than the one that is there, or the first.
bool take_least(std::int64_t time_ns, std::int64_t& least_ns) {
  if (time_ns <= 0 || (least_ns > 0 && least_ns <= time_ns)) return false;
  least_ns = time_ns;
  return true;
}

void take_times(const BenchRow& row, ProblemOnDevice& device) {
  if (row.status == Status::passed && take_least(row.median_ns, device.kernel_ns)) {
    device.kernel = row.kernel;
  }
  for (const RecordedReference& reference : row.references) {
    if (!reference.unavailable.empty()) continue;
    if (reference.id == "pytorch_eager") {
      take_least(reference.median_ns, device.pytorch_ns);
    } else if (reference.id == "pytorch_compile") {
      take_least(reference.median_ns, device.pytorch_compile_ns);
    } else if (!reference.id.starts_with("pytorch_") &&
               take_least(reference.median_ns, device.library_ns)) {
      device.library = reference.id;
    }
  }
}

ProblemOnDevice on_recorded_device(const Problem& problem, const Bench& bench) {
  ProblemOnDevice device;
  device.device = bench.device_name;
  device.speed_of_light_ns = speed_of_light_ns(problem, device_of(bench));
  if (bench.ceilings.copy_bytes_per_s > 0) device.ceiling_ns = ceiling_ns(problem, bench.ceilings);
  for (const BenchRow& row : bench.rows) {
    if (row.problem == problem.id) take_times(row, device);
  }
  return device;
}

ProblemOnDevice on_known_chip(const Problem& problem, const KnownDevice& known) {
  Bench bench;
  bench.device_name = known.name;
  bench.sm = known.sm;
  bench.multiprocessors = known.multiprocessors;
  bench.l2_bytes = known.l2_bytes;
  bench.clock_khz = known.clock_khz;
  bench.memory_clock_khz = known.memory_clock_khz;
  bench.memory_bus_bits = known.memory_bus_bits;
  return on_recorded_device(problem, bench);
}

std::string time_or_dash(std::int64_t time_ns, const std::string& name = "") {
  if (time_ns <= 0) return "–";
  return milliseconds(time_ns) + (name.empty() ? "" : " (" + name + ")");
}

Table device_table(const std::vector<ProblemOnDevice>& devices) {
  Table table;
  table.columns = {
      {.heading = "device"},
      {.heading = "speed of light", .right_aligned = true, .short_heading = "light"},
      {.heading = "ceiling", .right_aligned = true},
      {.heading = "best kernel", .wraps = true},
      {.heading = "fastest library", .wraps = true, .short_heading = "library"},
      {.heading = "PyTorch", .right_aligned = true},
      {.heading = "torch.compile", .right_aligned = true, .rank = 1, .short_heading = "compile"}};
  for (const ProblemOnDevice& one : devices) {
    table.rows.push_back({one.device, time_or_dash(one.speed_of_light_ns),
                          time_or_dash(one.ceiling_ns), time_or_dash(one.kernel_ns, one.kernel),
                          time_or_dash(one.library_ns, one.library), time_or_dash(one.pytorch_ns),
                          time_or_dash(one.pytorch_compile_ns)});
  }
  return table;
}

std::string paragraph(const std::string& text) { return wrapped(text, page_columns, 2) + "\n"; }

std::string tolerance_words(const Problem& problem) {
  const auto number = [](double value) { return printed("%.3g", value); };
  const Tolerance& tolerance = problem.tolerance;
  std::string text = "every element |error| ≤ " + number(tolerance.absolute) + " + " +
                     number(tolerance.relative) + " · |truth|; rms(error) ≤ " +
                     number(tolerance.rms_error_over_rms) + " · rms(truth); largest |error| ≤ " +
                     number(tolerance.max_error_over_rms) + " · rms(truth)";
  for (const Invariant& one : problem.invariants) {
    text += "; " + one.name + " (violation at most " + number(one.bound) + ")";
  }
  return text;
}

std::string stress_words(const Problem& problem) {
  std::vector<std::string> names;
  for (const StressCase& one : problem.stress_cases) names.push_back(one.name);
  return joined(names);
}

std::string size_words(const Problem& problem) {
  std::vector<std::string> words;
  for (const auto& [axis, range] : problem.other_sizes) {
    words.push_back(axis + " " + std::to_string(range.first) + " to " +
                    std::to_string(range.second));
  }
  return joined(words);
}

std::string work_words(const Problem& problem) {
  const bool values_decide = std::any_of(problem.tensors.begin(), problem.tensors.end(),
                                         [](const Tensor& one) { return one.read_share < 1; });
  std::string text = std::to_string(problem.operations) + " operations, " +
                     std::to_string(problem.min_bytes) + " bytes (each input read once, " +
                     (values_decide ? "as far as values ask for it on average, " : "") +
                     "each output written once)";
  if (problem.least_bytes != problem.min_bytes) {
    text += ", " + std::to_string(problem.least_bytes) + " of which no method can do without";
  }
  text += "; " +
          printed("%.3g", static_cast<double>(problem.operations) /
                              static_cast<double>(std::max<std::int64_t>(problem.min_bytes, 1))) +
          " operations a byte";
  if (problem.matrix_products > 0) {
    text += "; for the matrix units, " +
            counted(static_cast<std::size_t>(problem.matrix_products), "FP16 product") +
            " for each of its own";
  }
  return text;
}

/// The list that the reader of sources names where it refuses a header.
std::string allowed_header_words() {
  const Result<Ok> refused = check_includes("#include <no_such_header>\n", "kernel.cu");
  constexpr std::string_view mark = "allow-list: ";
  const std::string message = refused ? "" : refused.error().message;
  const std::size_t at = message.find(mark);
  return at == std::string::npos ? message : message.substr(at + mark.size());
}

std::string limit_words() {
  return "source " + std::to_string(max_source_bytes) + " bytes, plan " +
         std::to_string(max_plan_bytes) + " bytes, workspaces and __device__ variables together " +
         std::to_string(max_workspace_bytes) + " bytes; `rekernel show plan` has those of launches";
}

std::vector<std::string> reference_ids_of(const Problem& problem) {
  std::vector<std::string> ids = library_reference_ids(problem.id);
  for (std::string& id : pytorch_ids(problem)) ids.push_back(std::move(id));
  return ids;
}

/// What the times are, and what is missing.
std::string device_words(const std::vector<ProblemOnDevice>& devices) {
  const bool any = std::any_of(devices.begin(), devices.end(), [](const ProblemOnDevice& one) {
    return one.kernel_ns > 0 || one.library_ns > 0 || one.pytorch_ns > 0;
  });
  return std::string("Times are recorded ones, in ms, not measured now.") +
         (any ? ""
              : " None is recorded for this problem: `rekernel bench` on a kernel of it "
                "measures PyTorch too.") +
         " Speed of light: the least that the chip's memory and matrix units need. Ceiling: at the "
         "rates of a copy and of the library's matrix product, measured there.";
}

}  // namespace

std::vector<ProblemOnDevice> problem_on_devices(const Problem& problem,
                                                const std::vector<Bench>& benches) {
  std::vector<ProblemOnDevice> devices;
  for (const Bench& bench : benches) devices.push_back(on_recorded_device(problem, bench));
  for (const KnownDevice& known : all_known_devices()) {
    const bool recorded =
        std::any_of(devices.begin(), devices.end(),
                    [&](const ProblemOnDevice& one) { return one.device == known.name; });
    if (!recorded) devices.push_back(on_known_chip(problem, known));
  }
  return devices;
}

std::string problem_page(const Problem& problem, const std::vector<std::string>& kernels,
                         const std::vector<ProblemOnDevice>& devices, const TableFormat& format) {
  if (format.csv) return format.shown(device_table(devices));
  std::string text = problem.id + ": " + problem.title + "\n";
  text += labelled("group", problem.group);
  if (!problem.source.benchmark.empty()) {
    text += labelled(
        "source", problem.source.benchmark + ", number " + std::to_string(problem.source.number));
  }
  if (problem.program) {
    text += "\nprogram, which gives the truth in float64\n" + quoted_lines(problem.program->text);
  } else {
    for (const std::string& statement : problem.formula) {
      text += labelled(&statement == &problem.formula.front() ? "definition" : "", statement);
    }
    text += labelled("PyTorch", problem.pytorch);
  }
  text += "\ntensors, row-major\n";
  for (const Tensor& tensor : problem.tensors) text += tensor_line(tensor);
  text += "\nproblem.h\n" + quoted_lines(problem_header(problem)) + "\n";
  text += "correct\n" + labelled("tolerance", tolerance_words(problem)) +
          labelled("stress", stress_words(problem)) + labelled("other sizes", size_words(problem));
  text += "\nwork and limits\n" + labelled("work", work_words(problem)) +
          labelled("references", joined(reference_ids_of(problem))) +
          labelled("kernels", kernels.empty() ? "none" : joined(kernels)) +
          labelled("headers", allowed_header_words()) + labelled("limits", limit_words());
  text += "\n" + format.shown(device_table(devices)) + paragraph(device_words(devices));
  return text;
}

boost::json::object problem_json(const Problem& problem, const std::vector<std::string>& kernels,
                                 const std::vector<ProblemOnDevice>& devices) {
  boost::json::array tensors, stress, on_devices;
  for (const Tensor& tensor : problem.tensors) {
    boost::json::object one = tensor_json(tensor);
    one["bytes"] = tensor.bytes();
    one["drawn"] = nullptr;
    if (tensor.role == Role::input) one["drawn"] = to_string(tensor.distribution.kind);
    tensors.push_back(std::move(one));
  }
  for (const StressCase& one : problem.stress_cases)
    stress.push_back(boost::json::string(one.name));
  for (const ProblemOnDevice& one : devices) {
    on_devices.push_back({{"device", one.device},
                          {"speed_of_light_ns", one.speed_of_light_ns},
                          {"ceiling_ns", one.ceiling_ns},
                          {"kernel", one.kernel},
                          {"kernel_ns", one.kernel_ns},
                          {"library", one.library},
                          {"library_ns", one.library_ns},
                          {"pytorch_eager_ns", one.pytorch_ns},
                          {"pytorch_compile_ns", one.pytorch_compile_ns}});
  }
  const Tolerance& tolerance = problem.tolerance;
  return {{"schema", 1},
          {"id", problem.id},
          {"group", problem.group},
          {"title", problem.title},
          {"definition", boost::json::value_from(problem.formula)},
          {"pytorch", problem.pytorch},
          {"tensors", std::move(tensors)},
          {"problem_header", problem_header(problem)},
          {"tolerance",
           {{"absolute", tolerance.absolute},
            {"relative", tolerance.relative},
            {"rms_error_over_rms", tolerance.rms_error_over_rms},
            {"max_error_over_rms", tolerance.max_error_over_rms}}},
          {"stress", std::move(stress)},
          {"operations", problem.operations},
          {"min_bytes", problem.min_bytes},
          {"least_bytes", problem.least_bytes},
          {"matrix_products", problem.matrix_products},
          {"references", boost::json::value_from(reference_ids_of(problem))},
          {"kernels", boost::json::value_from(kernels)},
          {"allowed_headers", allowed_header_words()},
          {"devices", std::move(on_devices)}};
}

}  // namespace rekernel

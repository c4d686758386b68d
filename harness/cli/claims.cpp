#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/harness_digest.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/capture/capture.h"
#include "harness/claims/claim_tools.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/gpu/choice.h"
#include "harness/gpu/identity.h"
#include "harness/measuring/references.h"
#include "harness/problem_import/problem_import.h"
#include "harness/project/root.h"
#include "harness/records/report.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

std::string times_text(double times) { return printed("%.3g", times) + "×"; }

std::string claimed_text(const ClaimComparison& one) {
  if (one.claimed.unit == "ms") return printed("%.4g", one.claimed.value) + " ms";
  return times_text(one.claimed.value) + " " + one.claimed.over;
}

std::string measured_text(const ClaimRow& row, const ClaimComparison& one) {
  if (one.claimed.unit == "ms") return row.median_ns > 0 ? milliseconds(row.median_ns) + " ms" : "";
  if (!one.measured) return "";
  constexpr double whole = 100;
  return times_text(one.measured->value / whole) + " [" +
         printed("%.3g", one.measured->low / whole) + ", " +
         printed("%.3g", one.measured->high / whole) + "]";
}

/// One line a claimed figure; programs of which none is told have one as well.
Table claims_table(const ClaimsRecord& record) {
  Table table;
  table.columns = {{"program"},
                   {.heading = "verdict", .good = "passed"},
                   {.heading = "ms", .right_aligned = true, .csv = "time_ms"},
                   {"claimed"},
                   {"measured"},
                   {"holds"}};
  for (const ClaimRow& row : record.rows) {
    const std::string verdict = row.status.empty() ? to_string(row.outcome) : row.status;
    const std::string time = row.median_ns > 0 ? milliseconds(row.median_ns) : no_cell;
    const std::vector<ClaimComparison> comparisons = compare(row);
    if (comparisons.empty()) {
      table.rows.push_back({row.claim.name, verdict, time, no_cell, no_cell, no_cell});
    }
    for (const ClaimComparison& one : comparisons) {
      const std::string measured = measured_text(row, one);
      table.rows.push_back({row.claim.name, verdict, time, claimed_text(one),
                            measured.empty() ? no_cell : measured, one.holds ? "yes" : "no"});
    }
  }
  return table;
}

std::string claims_text(const ClaimsRecord& record, const TableFormat& format) {
  std::string text = format.shown(claims_table(record));
  for (const ClaimRow& row : record.rows) {
    if (!row.reason.empty()) text += format.words(row.claim.name + ": " + row.reason + "\n");
  }
  const bool claims = std::any_of(record.rows.begin(), record.rows.end(),
                                  [](const ClaimRow& row) { return !row.claim.claimed.empty(); });
  if (!claims) return text;
  return text + format.words("Claimed on " + record.file.device +
                             ". A claim holds where the program passed and the interval of the "
                             "measured speedup reaches it.\n");
}

Page claims_page() {
  Page page;
  page.usage = "FILE --sources DIR [options]";
  page.description =
      "Captures and judges a list of other people's programs, and writes what was claimed of each "
      "beside what was measured. Programs are compiled in the sandbox while others are judged. "
      "What "
      "is recorded already is not repeated. harness/claims/README.md says what stands in FILE.";
  page.takes({"file", "FILE", "the list of programs and claims", Count::one},
             text_value("FILE", {Names::file}));
  page.examples = {
      {"rekernel claims results/claims/cuda_l2_h100.claims.json --sources ../others"},
      {"rekernel claims results/claims/cuda_l2_h100.claims.json --sources ../others --only "
       "m4096_n4096_k4096 --compile-only",
       "without a GPU"}};
  page.group("Programs")
      .add_options()("sources", text_value("DIR", {Names::folder}),
                     "the folder below which the programs' files lie")(
          "only", list_value("NAME"), "this claim alone; once for each of several")(
          "work", text_value("DIR", {Names::folder}),
          "folder for what is built and captured; one in the temporary directory by default")(
          "compilers", whole_number(1, 1024),
          "programs compiled at a time; half of the cores by "
          "default")("compile-only", po::bool_switch(),
                     "build the programs and judge none; needs no GPU");
  page.group("Measuring")
      .add_options()("samples", whole_number(10, 10000)->default_value(60), "timed samples each")(
          "pytorch", one_of({"auto", "on", "off", "eager"})->default_value("auto"),
          "time PyTorch too; auto: when python3 can import torch; eager: without torch.compile");
  add_device_options(page.group("Measuring"));
  page.group("Output").add_options()(
      "record", text_value("FILE", {Names::file}),
      "where the rows are kept; results/claims/<name>.json of the project by default")(
      "again", po::bool_switch(), "also what is recorded already")("json", po::bool_switch(),
                                                                   "print the record as JSON");
  add_wide_option(page.group("Output"));
  page.statuses[1] = "a program did not pass";
  return page;
}

Result<fs::path> record_path(const ParsedArguments& parsed, const ClaimsFile& file) {
  if (parsed.has("record")) return fs::path(parsed.get<std::string>("record"));
  const Result<fs::path> root = own_project();
  if (!root) return Error{root.error().message + "; --record FILE writes elsewhere"};
  return claims_record_path(*root, file.name);
}

Result<ClaimsRecord> recorded(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return ClaimsRecord{};
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  return claims_record_from_json(*text, path.string());
}

Result<Ok> check_names(const ClaimsFile& file, const std::vector<std::string>& only) {
  for (const std::string& name : only) {
    const bool known = std::any_of(file.claims.begin(), file.claims.end(),
                                   [&](const Claim& claim) { return claim.name == name; });
    if (!known) return Error{"--only: there is no claim \"" + one_line(name, 64) + "\""};
  }
  return Ok{};
}

/// By what a claim would be judged: another judge, problem or wrapper makes its row again.
std::string judge_of(const ClaimsFile& file, const fs::path& sources, const Claim& claim) {
  const auto digest_of = [&](const fs::path& name) {
    const Result<std::string> text = read_file(name);
    return text ? sha256_hex(*text) : "";
  };
  const std::string wrapper = claim.wrapper.empty() ? "" : digest_of(file.folder / claim.wrapper);
  if (claim.problem.ends_with(".json")) {
    return harness_digest("", {}) + digest_of(file.folder / claim.problem) + wrapper;
  }
  if (claim.problem.ends_with(".py")) {
    return harness_digest("", {}) + import_digest() + digest_of(sources / claim.problem) + wrapper;
  }
  return harness_digest(claim.problem, {}) + wrapper;
}

/// All GPUs, where none is asked for.
Result<std::vector<int>> devices_of(const ParsedArguments& parsed) {
  if (parsed.given("device") || parsed.given("gpus")) return chosen_devices(parsed);
  const Result<std::vector<VisibleGpu>> visible = visible_gpus();
  if (!visible) return visible.error();
  const Result<std::vector<VisibleGpu>> chosen = choose_gpus("all", *visible, std::nullopt);
  if (!chosen) return chosen.error();
  std::vector<int> devices;
  for (const VisibleGpu& gpu : *chosen) devices.push_back(gpu.ordinal);
  return devices;
}

/// What PyTorch compiles extensions for on a device: "9.0+PTX".
std::string extension_archs(int device) {
  const Result<GpuIdentity> gpu = identify_gpu(device);
  if (!gpu) return {};
  return std::to_string(gpu->capability.major) + "." + std::to_string(gpu->capability.minor) +
         "+PTX";
}

/// The name of a device for each row, once a program was judged on it.
std::string device_name(int device) {
  const Result<GpuIdentity> gpu = identify_gpu(device);
  return gpu ? gpu->name : "GPU " + std::to_string(device);
}

}  // namespace

int claims_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, claims_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const Result<ClaimsFile> file = read_claims(parsed.get<std::string>("file"));
  if (!file) return bad_input(file.error());
  ClaimsOptions options;
  if (parsed.has("only")) options.only = parsed.get<std::vector<std::string>>("only");
  if (Result<Ok> known = check_names(*file, options.only); !known) return bad_input(known.error());
  if (!parsed.has("sources")) {
    return bad_input({"claims: expected --sources DIR, the folder that the programs lie in"});
  }
  options.sources = parsed.get<std::string>("sources");
  std::error_code status;
  if (!fs::is_directory(options.sources, status)) {
    return bad_input({"--sources " + options.sources.string() + ": not a folder"});
  }
  options.sources = fs::canonical(options.sources, status);
  const bool compile_only = parsed.flag("compile-only");
  const Result<fs::path> path =
      compile_only && !parsed.has("record") ? fs::path{} : record_path(parsed, *file);
  if (!path) return bad_input(path.error());
  Result<ClaimsRecord> before = path->empty() ? ClaimsRecord{} : recorded(*path);
  if (!before) return bad_input(before.error());

  ClaimToolsOptions tools_options;
  tools_options.sources = options.sources;
  tools_options.claims_folder = file->folder;
  tools_options.samples = parsed.get<int>("samples");
  const std::string pytorch = parsed.get<std::string>("pytorch");
  tools_options.pytorch = !compile_only && pytorch != "off" && pytorch_is_installed();
  tools_options.compiled_pytorch = pytorch != "eager";
  const bool must = pytorch == "on" || pytorch == "eager";
  if (must && !compile_only && !tools_options.pytorch) {
    return bad_input({"--pytorch " + pytorch + ": python3 here cannot import torch"});
  }
  if (!compile_only) {
    Result<fs::path> recorder = find_recorder();
    if (!recorder) return bad_input(recorder.error());
    tools_options.recorder = *std::move(recorder);
    Result<std::vector<int>> devices = devices_of(parsed);
    if (!devices) return bad_input(devices.error());
    options.devices = *std::move(devices);
    tools_options.extension_archs = extension_archs(options.devices.front());
  }
  ClaimTools tools = claim_tools(tools_options);
  if (compile_only) {
    tools.judge = nullptr;
  } else {
    tools.judge = [judge = tools.judge](const Claim& claim, const fs::path& program,
                                        const fs::path& folder, int device, ClaimRow& row) {
      judge(claim, program, folder, device, row);
      row.device = device_name(device);
    };
  }
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  options.compilers = parsed.has("compilers") ? static_cast<unsigned>(parsed.get<int>("compilers"))
                                              : std::max(1u, cores / 2);
  options.again = parsed.flag("again");
  const bool own_work = !parsed.has("work");
  options.work =
      fs::absolute(own_work ? fs::temp_directory_path() / ("rekernel-claims-" + random_digits())
                            : fs::path(parsed.get<std::string>("work")));
  options.judge_of = [&](const Claim& claim) { return judge_of(*file, options.sources, claim); };
  options.say = [](const std::string& text) { std::cerr << text << std::endl; };
  if (!path->empty()) {
    options.arrived = [&](const ClaimsRecord& so_far) -> Result<Ok> {
      if (path->has_parent_path()) fs::create_directories(path->parent_path(), status);
      return write_file_atomically(*path, pretty_json(to_json(so_far)));
    };
  }
  Result<ClaimsRecord> record = run_claims(*file, *std::move(before), options, tools);
  if (own_work) fs::remove_all(options.work, status);
  if (!record) return bad_input(record.error());
  if (options.arrived) {
    if (Result<Ok> written = options.arrived(*record); !written) return bad_input(written.error());
  }
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*record));
  } else {
    std::cout << claims_text(*record, table_format(parsed));
  }
  if (!path->empty()) std::cerr << "recorded in " << path->string() << "\n";
  const bool good = std::all_of(record->rows.begin(), record->rows.end(), [&](const ClaimRow& row) {
    return compile_only ? row.outcome == ClaimOutcome::not_evaluated
                        : row.status == to_string(Status::passed);
  });
  return good ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel

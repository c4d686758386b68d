#include <boost/json.hpp>
#include <iostream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/capture/capture.h"
#include "harness/cli/command.h"
#include "harness/compile/compile.h"
#include "harness/gpu/cuda.h"
#include "harness/gpu/nvml.h"
#include "harness/measuring/references.h"
#include "harness/process/sandbox.h"
#include "harness/project/root.h"
#include "harness/records/report.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"
#include "reference/reference.h"

namespace rekernel {

namespace {

/// One thing that this machine has or lacks.
struct Finding {
  std::string what;
  bool present = false;
  std::string detail;  ///< version, or why it is missing
  std::string enables;
};

template <class T, class Describe>
Finding finding(std::string what, std::string enables, const Result<T>& result, Describe describe) {
  return {std::move(what), result.ok(), result ? describe(*result) : result.error().message,
          std::move(enables)};
}

std::string same(const std::string& text) { return text; }

Finding gpu_finding() {
  const std::string enables = "evaluate, bench, measured reproduce";
  if (Result<int> count = device_count(); !count) {
    return {"GPU", false, count.error().message, enables};
  }
  Result<Device> device = Device::open(0);
  return finding("GPU", enables, device, [](const Device& opened) {
    const DeviceProperties& properties = opened.properties();
    const Result<bool> host_memory = reaches_host_memory(0);
    return properties.name + ", sm " + std::to_string(properties.major) + "." +
           std::to_string(properties.minor) + ", " + std::to_string(properties.multiprocessors) +
           " SMs, " + std::to_string(properties.memory_bytes >> 30) + " GiB" +
           (host_memory && *host_memory ? ", kernels can address host memory" : "");
  });
}

std::vector<Finding> examine() {
  std::vector<Finding> findings;
  findings.push_back(finding("NVRTC", "compiling kernels", Compiler::load(),
                             [](const Compiler& compiler) { return compiler.version(); }));
  findings.push_back(finding("driver", "running kernels", driver_version_text(), same));
  findings.push_back(gpu_finding());
  findings.push_back(
      finding("sandbox", "children see no network and no home (optional)", sandbox(), same));
  const auto libraries = reference_library_versions();
  for (const char* name : {"cuBLAS", "cuDNN"}) {
    Finding library{name, false, "not found", "its references"};
    for (const auto& [found, version] : libraries) {
      if (found == name) library.present = true, library.detail = version;
    }
    findings.push_back(std::move(library));
  }
  findings.push_back(
      finding("PyTorch", "PyTorch references (optional)", installed_pytorch_version(), same));
  findings.push_back(finding("recorder", "capture", find_recorder(),
                             [](const std::filesystem::path& path) { return path.string(); }));
  return findings;
}

Page doctor_page() {
  Page page;
  page.description =
      "Looks for compiler, driver, GPU, sandbox, libraries, PyTorch and the recorder of capture, "
      "and says what each of them allows.";
  page.examples = {{"rekernel doctor"}};
  page.group("Output").add_options()("json", boost::program_options::bool_switch(),
                                     "print the findings as JSON");
  add_table_options(page.group("Output"));
  page.statuses[1] = "no compiler: nothing works without NVRTC";
  return page;
}

}  // namespace

int doctor_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, doctor_page());
  if (parsed.exit_status) return *parsed.exit_status;

  const std::vector<Finding> findings = examine();
  if (parsed.flag("json")) {
    boost::json::object json;
    for (const Finding& one : findings) {
      json[one.what] = {{"present", one.present}, {"detail", one.detail}};
    }
    json["project"] = project_root().string();
    json["cache"] = cache_directory().string();
    std::cout << pretty_json(json);
  } else {
    Table table;
    table.columns = {{.heading = "what"},
                     {.heading = "here", .good = "yes"},
                     {.heading = "for", .wraps = true},
                     {.heading = "detail", .wraps = true}};
    for (const Finding& one : findings) {
      table.rows.push_back({one.what, one.present ? "yes" : "no", one.enables, one.detail});
    }
    const TableFormat format = table_format(parsed);
    std::cout << format.shown(table);
    if (!format.csv) {
      std::cout << "\nproject " << project_root().string() << "\ncache   "
                << cache_directory().string() << "\n";
    }
  }
  // Without the compiler nothing works; everything else only narrows what can be measured.
  return findings.front().present ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel

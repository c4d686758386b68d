#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "harness/base/json.h"
#include "harness/base/judging_sources.h"
#include "harness/base/parallel.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/cli/problem.h"
#include "harness/compile/compile.h"
#include "harness/device/buffers.h"
#include "harness/device/device_tools.h"
#include "harness/device/own_program.h"
#include "harness/gpu/cuda.h"
#include "harness/gpu/exclusive.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/project/root.h"
#include "harness/records/definitions.h"
#include "harness/records/report.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/tables.h"
#include "reference/agreement.h"

namespace rekernel {

namespace {

namespace po = boost::program_options;
namespace json = boost::json;

constexpr std::uint64_t verification_seed = 20260101;
constexpr std::chrono::seconds verification_deadline{300};

/// A problem's own device code, compiled for the device.
struct MadeCode {
  Result<CompiledProgram> truth = Error{"not compiled"};
  Result<CompiledProgram> making = Error{"not compiled"};
};

std::vector<MadeCode> compile_made_code(const Compiler& compiler,
                                        const std::vector<const Problem*>& problems,
                                        const std::string& target) {
  std::vector<MadeCode> code(problems.size());
  for_each_in_parallel(problems.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    const Problem& problem = *problems[i];
    const std::string header = problem_header(problem);
    code[i].truth = compiler.compile(problem.device_oracle, header, target);
    if (!problem.making.steps.empty()) {
      code[i].making = compiler.compile(problem.making, header, target);
    }
  });
  return code;
}

/// The truth of one problem on the device, and what it took.
class TruthOnTheDevice {
 public:
  TruthOnTheDevice(const Problem& problem, const MadeCode& code, const DeviceTools& tools,
                   const DeviceProperties& device, const Stream& stream)
      : problem_(problem) {
    std::optional<InputBuffers::Making> making;
    if (code.making) making.emplace(InputBuffers::Making{*code.making, device});
    inputs_.emplace(problem, tools, Surroundings::nothing, making ? &*making : nullptr);
    inputs_->fill(verification_seed, nullptr, stream);
    stream.synchronize();
    Bindings bindings = inputs_->bindings();
    for (const Tensor* output : problem.outputs()) {
      DeviceBuffer& truth = truths_[output->name];
      truth = DeviceBuffer(output->elements() * size_in_bytes(DType::f64));
      bindings[truth_buffer(output->name)] = {truth.get(), truth.bytes()};
    }
    const OwnProgram program(problem.device_oracle, *code.truth, bindings, device);
    program.enqueue(stream);  // loads what is loaded at the first launch
    const Event start, stop;
    start.record(stream);
    program.enqueue(stream);
    stop.record(stream);
    truth_ns_ = elapsed_ns(start, stop);
  }

  std::int64_t truth_ns() const { return truth_ns_; }

  void copy_to(std::span<std::byte> memory, const ValuesInMemory& values) const {
    for (std::size_t i = 0; i < problem_.tensors.size(); ++i) {
      const Tensor& tensor = problem_.tensors[i];
      const CUdeviceptr from = tensor.role == Role::input
                                   ? inputs_->bindings().at(tensor.name).pointer
                                   : truths_.at(tensor.name).get();
      const ValuesInMemory::Place& place = values.tensors[i];
      REKERNEL_CUDA(
          cuMemcpyDtoH(memory.data() + place.at, from, static_cast<std::size_t>(place.bytes)));
    }
  }

 private:
  const Problem& problem_;
  std::optional<InputBuffers> inputs_;
  std::map<std::string, DeviceBuffer> truths_;
  std::int64_t truth_ns_ = 0;
};

/// Compares definitions with PyTorch, one problem after the other on one GPU.
class Verification {
 public:
  Verification(const Device& device, const CompiledProgram& tools, int ordinal)
      : properties_(device.properties()), tools_(tools, properties_), ordinal_(ordinal) {}

  DefinitionRow row_of(const Problem& problem, const MadeCode& code) {
    DefinitionRow row;
    row.problem = problem.id;
    row.digest = problem_digest(problem.text);
    row.measured = today();
    for (const Workspace& one : problem.device_oracle.workspaces) row.workspace_bytes += one.bytes;
    const Result<Ok> done = fill(row, problem, code);
    if (!done) row.failure = done.error().message;
    return row;
  }

 private:
  Result<Ok> fill(DefinitionRow& row, const Problem& problem, const MadeCode& code) {
    if (!code.truth) return code.truth.error();
    if (!problem.making.steps.empty() && !code.making) return code.making.error();
    if (!process_) {
      auto started = AgreementProcess::start(AgreementProcess::Place::gpu, ordinal_);
      if (!started) return started.error();
      process_ = std::move(*started);
    }
    const ValuesInMemory values = values_in_memory(problem, StoredInputs::own_types);
    const Result<std::span<std::byte>> memory = process_->memory(values.bytes);
    if (!memory) return memory.error();
    try {
      // Gone before PyTorch takes memory of the same device.
      const TruthOnTheDevice truth(problem, code, tools_, properties_, stream_);
      row.truth_ns = truth.truth_ns();
      truth.copy_to(*memory, values);
    } catch (const CudaError& failure) {
      return Error{failure.what()};
    }
    auto agreements = process_->compare(problem, values, verification_deadline);
    if (!agreements) {
      process_.reset();  // it may have ended
      return agreements.error();
    }
    for (const Agreement& one : *agreements) {
      const bool close = one.comparison == Comparison::close;
      row.outputs.push_back({one.output, close ? printed("%.2g", one.largest) : "", one.unequal,
                             one.elements, one.agrees()});
    }
    return Ok{};
  }

  DeviceProperties properties_;
  Stream stream_;
  DeviceTools tools_;
  int ordinal_;
  std::unique_ptr<AgreementProcess> process_;
};

Result<DefinitionsRecord> verified(const std::vector<const Problem*>& problems, int ordinal) {
  Progress progress;
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  const Result<GpuLock> lock = locked_gpu(ordinal, progress);
  if (!lock) return lock.error();
  const Result<Device> device = Device::open(ordinal);
  if (!device) return device.error();
  const DeviceProperties& properties = device->properties();
  const std::string target = Compiler::target_for_device(properties.major, properties.minor);
  progress.show("compiling …");
  const Result<CompiledProgram> tools = compiler->compile(device_tools_program(), "", target);
  if (!tools) return tools.error();
  const std::vector<MadeCode> code = compile_made_code(*compiler, problems, target);

  DefinitionsRecord record;
  record.device_name = properties.name;
  record.sm = std::to_string(properties.major) + "." + std::to_string(properties.minor);
  record.toolchain = toolchain_versions();
  Verification verification(*device, *tools, ordinal);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    progress.step(i, problems.size(), problems[i]->id);
    record.rows.push_back(verification.row_of(*problems[i], code[i]));
  }
  return record;
}

Page problem_verify_page() {
  Page page;
  page.description =
      "Evaluates definitions and their PyTorch expressions in float64 on the same inputs, and "
      "compares them.";
  page.takes({"problem", "PROBLEM", "ids of problems", Count::any},
             list_value("PROBLEM", {Names::problem}));
  page.examples = {{"rekernel problem verify --all --record"}};
  page.group("Measuring")
      .add_options()("all", po::bool_switch(), "every problem")(
          "device", po::value<int>()->value_name("N")->default_value(0),
          "number of the GPU, as nvidia-smi counts");
  page.group("Output").add_options()("record", po::bool_switch(),
                                     "merge the rows into results/<gpu>/definitions.json")(
      "json", po::bool_switch(), "print the record as JSON");
  add_table_options(page.group("Output"));
  page.statuses[1] = "a definition disagrees";
  return page;
}

}  // namespace

int problem_verify_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, problem_verify_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (parsed.flag("record")) {
    if (const auto own = own_project(); !own) return bad_input(own.error());
  }
  const Result<std::vector<const Problem*>> problems = chosen_problems(parsed, "problem verify");
  if (!problems) return bad_input(problems.error());
  if (!pytorch_is_installed()) return bad_input({"python3 here cannot import torch"});

  const Result<DefinitionsRecord> record = verified(*problems, parsed.get<int>("device"));
  if (!record) return bad_input(record.error());
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*record));
  } else {
    std::cout << table_format(parsed).shown(definitions_table(*record));
  }
  if (parsed.flag("record")) {
    const Result<std::filesystem::path> path = record_definitions(project_root(), *record);
    if (!path) return bad_input(path.error());
    std::cerr << "recorded in " << path->string() << "\n";
  }
  const bool good = std::all_of(record->rows.begin(), record->rows.end(),
                                [](const DefinitionRow& row) { return row.agrees(); });
  return good ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel

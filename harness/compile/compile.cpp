#include "harness/compile/compile.h"

#include <nvrtc.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "harness/base/cache.h"
#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/candidate/arch.h"
#include "harness/candidate/code.h"
#include "harness/compile/assemble.h"
#include "harness/compile/compiler_message.h"
#include "harness/compile/cubin.h"
#include "harness/gpu/library.h"

namespace rekernel {
namespace {

constexpr std::size_t max_cubin_bytes = 256u << 20;
constexpr std::size_t max_shown_log = 16u << 10;
constexpr std::string_view cache_magic = "rekernel cubin 2\n";
constexpr std::size_t digest_length = 64;

// NVRTC searches the source's folder for quoted headers, and takes the working directory for it
// where the source has none. This one does not exist, and no message shows it.
constexpr std::string_view source_folder = "/rekernel-has-no-source-folder/";

/// NVRTC's functions under their own names.
struct Nvrtc {
  decltype(&::nvrtcVersion) nvrtcVersion = nullptr;
  decltype(&::nvrtcGetErrorString) nvrtcGetErrorString = nullptr;
  decltype(&::nvrtcGetNumSupportedArchs) nvrtcGetNumSupportedArchs = nullptr;
  decltype(&::nvrtcGetSupportedArchs) nvrtcGetSupportedArchs = nullptr;
  decltype(&::nvrtcCreateProgram) nvrtcCreateProgram = nullptr;
  decltype(&::nvrtcDestroyProgram) nvrtcDestroyProgram = nullptr;
  decltype(&::nvrtcCompileProgram) nvrtcCompileProgram = nullptr;
  decltype(&::nvrtcGetProgramLogSize) nvrtcGetProgramLogSize = nullptr;
  decltype(&::nvrtcGetProgramLog) nvrtcGetProgramLog = nullptr;
  decltype(&::nvrtcGetCUBINSize) nvrtcGetCUBINSize = nullptr;
  decltype(&::nvrtcGetCUBIN) nvrtcGetCUBIN = nullptr;

  bool load(const DynamicLibrary& library) {
    return library.load("nvrtcVersion", nvrtcVersion) &&
           library.load("nvrtcGetErrorString", nvrtcGetErrorString) &&
           library.load("nvrtcGetNumSupportedArchs", nvrtcGetNumSupportedArchs) &&
           library.load("nvrtcGetSupportedArchs", nvrtcGetSupportedArchs) &&
           library.load("nvrtcCreateProgram", nvrtcCreateProgram) &&
           library.load("nvrtcDestroyProgram", nvrtcDestroyProgram) &&
           library.load("nvrtcCompileProgram", nvrtcCompileProgram) &&
           library.load("nvrtcGetProgramLogSize", nvrtcGetProgramLogSize) &&
           library.load("nvrtcGetProgramLog", nvrtcGetProgramLog) &&
           library.load("nvrtcGetCUBINSize", nvrtcGetCUBINSize) &&
           library.load("nvrtcGetCUBIN", nvrtcGetCUBIN);
  }

  void check(nvrtcResult result, const char* call) const {
    if (result != NVRTC_SUCCESS) {
      throw std::runtime_error(std::string(call) + ": " + nvrtcGetErrorString(result));
    }
  }
};

/// A translation unit inside NVRTC.
class TranslationUnit {
 public:
  TranslationUnit(const Nvrtc& nvrtc, const std::string& source, const std::string& problem_header)
      : nvrtc_(nvrtc) {
    const std::string name = std::string(source_folder) + code_file(Language::cuda);
    const char* header_text = problem_header.c_str();
    const char* header_name = "problem.h";
    nvrtc_.check(nvrtc_.nvrtcCreateProgram(&program_, source.c_str(), name.c_str(), 1, &header_text,
                                           &header_name),
                 "nvrtcCreateProgram");
  }
  TranslationUnit(const TranslationUnit&) = delete;
  TranslationUnit& operator=(const TranslationUnit&) = delete;
  ~TranslationUnit() { nvrtc_.nvrtcDestroyProgram(&program_); }

  nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return nvrtc_.nvrtcCompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  std::string log() const {
    std::size_t size = 0;
    nvrtc_.check(nvrtc_.nvrtcGetProgramLogSize(program_, &size), "nvrtcGetProgramLogSize");
    std::string text(size, '\0');
    nvrtc_.check(nvrtc_.nvrtcGetProgramLog(program_, text.data()), "nvrtcGetProgramLog");
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
  }

  std::string cubin() const {
    std::size_t size = 0;
    nvrtc_.check(nvrtc_.nvrtcGetCUBINSize(program_, &size), "nvrtcGetCUBINSize");
    std::string bytes(size, '\0');
    nvrtc_.check(nvrtc_.nvrtcGetCUBIN(program_, bytes.data()), "nvrtcGetCUBIN");
    return bytes;
  }

 private:
  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

/// The log without what differs from run to run, so that records of equal runs are equal.
std::string tidy_log(std::string_view log) {
  std::string result;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    std::string line(log.substr(0, end));
    log.remove_prefix(std::min(end + 1, log.size()));
    if (line.find("ptxas info    : Compile time") != std::string::npos) continue;
    for (std::size_t at; (at = line.find(source_folder)) != std::string::npos;) {
      line.erase(at, source_folder.size());
    }
    result += line + '\n';
  }
  while (result.ends_with("\n\n")) result.pop_back();
  return result;
}

/// The start of a log, whole lines of it: some errors repeat themselves for megabytes.
std::string shortened(const std::string& log) {
  if (log.size() <= max_shown_log) return log;
  const std::size_t end = log.rfind('\n', max_shown_log);
  return log.substr(0, end == std::string::npos ? 0 : end + 1) + "… (" +
         std::to_string(log.size()) + " bytes in all)\n";
}

/// The log with the start of the warnings alone, if they are long. The assembler's report after
/// them stays: resources are read from it.
std::string with_few_warnings(const std::string& log) {
  const std::size_t report = report_begin(log);
  return shortened(log.substr(0, report)) + log.substr(report);
}

/// Static shared memory of a block. Up to sm_89 what is more has to be dynamic.
std::int64_t most_static_shared_bytes(const std::string& target) {
  constexpr std::int64_t everywhere = 48 << 10;
  const std::optional<Arch> arch = arch_from_string(target);
  const bool takes_all = arch && (*arch)->capability.major >= 9;
  return takes_all ? (*arch)->max_shared_bytes_per_block : everywhere;
}

/// The first NVRTC that takes --Ofast-compile.
constexpr int fast_compile_version = 13;

constexpr const char* language_options[] = {"--std=c++20", "--device-as-default-execution-space"};

std::vector<std::string> own_options(const CompileOptions& options) {
  std::vector<std::string> result;
  if (options.fast_math) result.push_back("--use_fast_math");
  if (options.max_registers) {
    result.push_back("--maxrregcount=" + std::to_string(*options.max_registers));
  }
  for (const auto& [name, value] : options.defines) {
    result.push_back("--define-macro=" + name + "=" + value);
  }
  return result;
}

std::vector<std::string> compile_options(const CompileOptions& options, const std::string& target,
                                         const std::vector<std::string>& include_directories,
                                         const std::string& version) {
  std::vector<std::string> result = {"--gpu-architecture=" + target};
  result.insert(result.end(), std::begin(language_options), std::end(language_options));
  result.push_back("--ptxas-options=-v");
  if (options.for_an_answer_alone && std::atoi(version.c_str()) >= fast_compile_version)
    result.push_back("--Ofast-compile=max");
  for (const std::string& folder : include_directories)
    result.push_back("--include-path=" + folder);
  for (std::string& option : own_options(options)) result.push_back(std::move(option));
  return result;
}

/// Everything that decides the outcome. The CUDA headers are stood for by their folders and NVRTC's
/// version: hashing them would take longer than most compilations.
std::string cache_key(const std::string& version, const std::vector<std::string>& options,
                      const std::string& problem_header, const std::string& source) {
  std::string fields;
  append_field(fields, version);
  append_field(fields, std::to_string(options.size()));
  for (const std::string& option : options) append_field(fields, option);
  append_field(fields, problem_header);
  append_field(fields, source);
  return sha256_hex(fields);
}

/// A file of the cache: magic line, digest of the rest, then log and cubin as fields. A file that
/// is damaged or from another version counts as absent.
std::optional<CompiledProgram> program_from_file(std::string_view rest) {
  if (!rest.starts_with(cache_magic)) return std::nullopt;
  rest.remove_prefix(cache_magic.size());
  if (rest.size() < digest_length) return std::nullopt;
  const std::string_view digest = rest.substr(0, digest_length);
  rest.remove_prefix(digest_length);
  if (digest != sha256_hex(rest)) return std::nullopt;
  auto log = take_field(rest);
  auto cubin = take_field(rest);
  if (!log || !cubin || !rest.empty()) return std::nullopt;
  auto program = program_from(*std::move(cubin), *std::move(log));
  if (!program) return std::nullopt;
  program->from_cache = true;
  return *std::move(program);
}

std::string file_of(const CompiledProgram& program) {
  std::string payload;
  append_field(payload, program.log);
  append_field(payload, program.cubin);
  return std::string(cache_magic) + sha256_hex(payload) + payload;
}

/// Bytes that an argument takes as a kernel parameter.
std::int64_t argument_bytes(const Argument& argument) {
  if (std::holds_alternative<BufferArgument>(argument)) return 8;
  if (std::holds_alternative<TensorMapArgument>(argument)) return tensor_map_bytes;
  if (const auto* bytes = std::get_if<BytesArgument>(&argument)) {
    return static_cast<std::int64_t>(bytes->bytes.size());
  }
  return std::visit([](auto value) { return static_cast<std::int64_t>(sizeof value); },
                    std::get<ScalarArgument>(argument));
}

const char* argument_kind(const Argument& argument) {
  if (std::holds_alternative<BufferArgument>(argument)) return "a pointer";
  if (std::holds_alternative<TensorMapArgument>(argument)) return "a tensor map";
  if (std::holds_alternative<BytesArgument>(argument)) return "this";
  return "this scalar";
}

Result<Ok> check_arguments(const KernelLaunch& launch, const KernelResources& kernel,
                           const std::string& place) {
  if (launch.args.size() != kernel.parameters.size()) {
    return Error{place + ".args: kernel \"" + kernel.name + "\" takes " +
                 std::to_string(kernel.parameters.size()) + " arguments, got " +
                 std::to_string(launch.args.size())};
  }
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    const std::int64_t given = argument_bytes(launch.args[i]);
    if (given == kernel.parameters[i].size) continue;
    return Error{place + ".args[" + std::to_string(i) + "]: " + argument_kind(launch.args[i]) +
                 " has " + std::to_string(given) + " bytes, the parameter of kernel \"" +
                 kernel.name + "\" has " + std::to_string(kernel.parameters[i].size)};
  }
  return Ok{};
}

Result<CompiledProgram> assembled(const std::string& ptx, const std::string& target) {
  Result<Assembled> code = assemble(ptx, target);
  if (!code) return code.error();
  if (!code->error.empty()) {
    return Error{"is not assembled for " + target + ":\n" + shortened(tidy_log(code->error))};
  }
  return program_from(std::move(code->cubin), tidy_log(code->log));
}

/// Machine code runs on the chips of its own generation alone, those that came with or after it.
bool runs_machine_code(const std::string& target, ComputeCapability made_for) {
  const std::optional<ComputeCapability> device = capability_of(target);
  return device && device->major == made_for.major && device->minor >= made_for.minor;
}

Result<CompiledProgram> checked_cubin(const std::string& cubin, const std::string& target) {
  const Result<ComputeCapability> made_for = cubin_capability(cubin);
  if (!made_for) return made_for.error();
  if (!runs_machine_code(target, *made_for)) {
    return Error{"is machine code for sm_" +
                 std::to_string(10 * made_for->major + made_for->minor) + "; expected such for " +
                 target};
  }
  return program_from(cubin, {});
}

}  // namespace

struct Compiler::State {
  Nvrtc nvrtc;
  std::string version;
  std::vector<int> capabilities;  ///< that NVRTC makes code for: 90 for 9.0
  std::vector<std::string> include_directories;

  Result<CompiledProgram> translate(const Program& program, const std::string& problem_header,
                                    const std::string& target) const {
    switch (program.language) {
      case Language::cuda:
        return translate_cuda(program, problem_header, target);
      case Language::ptx:
        return assembled(program.source, target);
      case Language::cubin:
        return checked_cubin(program.source, target);
    }
    throw std::logic_error("unknown language");
  }

  Result<CompiledProgram> translate_cuda(const Program& program, const std::string& problem_header,
                                         const std::string& target) const {
    TranslationUnit unit(nvrtc, program.source, problem_header);
    const nvrtcResult status =
        unit.compile(compile_options(program.compile, target, include_directories, version));
    std::string log = tidy_log(unit.log());
    if (status != NVRTC_SUCCESS) {
      return Error{"does not compile for " + target + " (" + nvrtc.nvrtcGetErrorString(status) +
                   "):\n" + shared_memory_error(log, most_static_shared_bytes(target)) +
                   shortened(log)};
    }
    return program_from(unit.cubin(), with_few_warnings(log));
  }
};

Compiler::Compiler(std::shared_ptr<const State> state) : state_(std::move(state)) {}

const KernelResources* CompiledProgram::find(std::string_view kernel, int module) const {
  if (module > 0) return modules.at(static_cast<std::size_t>(module) - 1).find(kernel);
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const auto& entry) { return entry.name == kernel; });
  return found == kernels.end() ? nullptr : &*found;
}

Result<Compiler> Compiler::load() {
  // Options from the environment would change the machine code without the cache's knowledge.
  ::unsetenv("NVRTC_APPEND_FLAGS");

  const auto library = DynamicLibrary::open({"libnvrtc.so.13", "libnvrtc.so.12"});
  if (!library) return Error{"NVRTC: " + library.error().message};
  auto state = std::make_shared<State>();
  if (!state->nvrtc.load(*library)) return Error{"NVRTC: " + library->path() + " is too old"};
  int major = 0;
  int minor = 0;
  state->nvrtc.check(state->nvrtc.nvrtcVersion(&major, &minor), "nvrtcVersion");
  state->version = std::to_string(major) + "." + std::to_string(minor);
  int count = 0;
  state->nvrtc.check(state->nvrtc.nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
  state->capabilities.resize(static_cast<std::size_t>(std::max(count, 0)));
  state->nvrtc.check(state->nvrtc.nvrtcGetSupportedArchs(state->capabilities.data()),
                     "nvrtcGetSupportedArchs");
  // NVRTC opens this by its bare name, which the loader finds outside its own path only if it is
  // loaded already. If it is nowhere, NVRTC's own message says so.
  (void)DynamicLibrary::open({"libnvrtc-builtins.so." + state->version}).ok();
  state->include_directories = cuda_include_directories();
  if (state->include_directories.empty()) {
    return Error{"CUDA headers: no cuda_fp16.h in " + joined(cuda_include_search_path())};
  }
  return Compiler(std::move(state));
}

std::string Compiler::version() const { return state_->version; }

bool Compiler::knows(const std::string& target) const {
  const std::optional<ComputeCapability> capability = capability_of(target);
  const std::vector<int>& known = state_->capabilities;
  return capability && std::find(known.begin(), known.end(),
                                 10 * capability->major + capability->minor) != known.end();
}

std::string Compiler::target_for_device(int major, int minor) { return target_for({major, minor}); }

std::string Compiler::cache_name(const Program& program, const std::string& problem_header,
                                 const std::string& target) const {
  return "cubin/" + cache_key(state_->version,
                              compile_options(program.compile, target, state_->include_directories,
                                              state_->version),
                              problem_header, program.source);
}

std::optional<CompiledProgram> Compiler::recall(const Program& program,
                                                const std::string& problem_header,
                                                const std::string& target) const {
  if (program.language != Language::cuda) return std::nullopt;
  const auto file = rekernel::recall(cache_name(program, problem_header, target), max_cubin_bytes);
  return file ? program_from_file(*file) : std::nullopt;
}

void Compiler::remember(const Program& program, const std::string& problem_header,
                        const std::string& target, const CompiledProgram& compiled) const {
  if (program.language != Language::cuda) return;
  (void)rekernel::remember({cache_name(program, problem_header, target), file_of(compiled)}).ok();
}

Result<CompiledProgram> Compiler::compile_anew(const Program& program,
                                               const std::string& problem_header,
                                               const std::string& target) const {
  const auto start = std::chrono::steady_clock::now();
  auto result = state_->translate(program, problem_header, target);
  if (!result) return result;
  result->compile_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count();
  return result;
}

Result<CompiledProgram> Compiler::compile(const Program& program, const std::string& problem_header,
                                          const std::string& target) const {
  if (auto found = recall(program, problem_header, target)) return *std::move(found);
  auto compiled = compile_anew(program, problem_header, target);
  if (compiled) remember(program, problem_header, target, *compiled);
  return compiled;
}

std::vector<std::string> source_options(const CompileOptions& options) {
  std::vector<std::string> result = own_options(options);
  result.insert(result.begin(), std::begin(language_options), std::end(language_options));
  return result;
}

Result<CompiledProgram> program_from(std::string cubin, std::string log) {
  CompiledProgram program;
  program.cubin = std::move(cubin);
  program.log = std::move(log);
  auto kernels = read_cubin(program.cubin);
  if (!kernels) return kernels.error();
  program.kernels = *std::move(kernels);
  add_assembler_report(program.log, program.kernels);
  return program;
}

bool may_run_on(const Program& program, const std::string& target) {
  const std::vector<Code> modules = code_of(program);
  return std::all_of(modules.begin(), modules.end(), [&](const Code& code) {
    if (code.language != Language::cubin) return true;
    const Result<ComputeCapability> made_for = cubin_capability(code.text);
    return !made_for || runs_machine_code(target, *made_for);  // what is damaged says so later
  });
}

std::vector<KernelResources> launched_kernels(const Program& program,
                                              const CompiledProgram& compiled) {
  if (program.language == Language::cuda && program.modules.empty()) return compiled.kernels;
  std::vector<KernelResources> launched;
  for (const Step& step : program.steps) {
    const auto* launch = std::get_if<KernelLaunch>(&step);
    const KernelResources* kernel =
        launch ? compiled.find(launch->kernel, launch->module) : nullptr;
    const bool known =
        kernel && std::any_of(launched.begin(), launched.end(),
                              [&](const auto& one) { return one.name == kernel->name; });
    if (kernel && !known) launched.push_back(*kernel);
  }
  return launched;
}

namespace {

/// The stack of the launched kernel that needs the most, in bytes a thread.
std::uint64_t largest_stack(const Program& program, const CompiledProgram& compiled) {
  std::uint64_t most = 0;
  for (const KernelResources& kernel : launched_kernels(program, compiled)) {
    most = std::max(most, static_cast<std::uint64_t>(kernel.stack_bytes));
  }
  return most;
}

/// Memory that no plan names is filled with nothing before a run; it has the same limit.
Result<Ok> check_device_memory(const Program& program, const CompiledProgram& compiled,
                               const std::string& where) {
  std::uint64_t bytes = 0;
  for (const Workspace& workspace : program.workspaces) {
    bytes += static_cast<std::uint64_t>(workspace.bytes);
  }
  const auto count = [&](std::uint64_t own) {
    bytes = own > max_workspace_bytes ? own : bytes + own;
    return bytes <= max_workspace_bytes;
  };
  const auto count_variables = [&](const CompiledProgram& module) {
    return count(static_device_bytes(module.cubin));
  };
  const std::string most = std::to_string(max_workspace_bytes);
  if (!count_variables(compiled) ||
      !std::all_of(compiled.modules.begin(), compiled.modules.end(), count_variables)) {
    return Error{where + ": workspaces and __device__ variables have " + std::to_string(bytes) +
                 " bytes or more; expected at most " + most};
  }
  // The driver sets it aside for all threads that can be resident at once.
  const std::uint64_t stack = largest_stack(program, compiled);
  const Result<ComputeCapability> device = cubin_capability(compiled.cubin);
  const auto threads = static_cast<std::uint64_t>(
      most_resident_threads(device ? *device : architectures[0].capability));
  if (count(stack * threads)) return Ok{};
  return Error{where + ": workspaces, __device__ variables and a stack of " +
               std::to_string(stack) + " bytes for every resident thread of the device have more " +
               "than the " + most + " bytes that a candidate may have"};
}

}  // namespace

Result<Ok> check_launches(const Program& program, const CompiledProgram& compiled,
                          const std::string& where) {
  if (auto checked = check_device_memory(program, compiled, where); !checked) return checked;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const auto* launch = std::get_if<KernelLaunch>(&program.steps[i]);
    if (!launch) continue;
    const std::string place = where + ": launches[" + std::to_string(i) + "]";
    const KernelResources* kernel = compiled.find(launch->kernel, launch->module);
    if (!kernel) {
      std::vector<std::string> names;
      const bool first = launch->module == 0;
      const CompiledProgram& module =
          first ? compiled : compiled.modules.at(static_cast<std::size_t>(launch->module) - 1);
      constexpr std::size_t most_names = 20;  // a library's module has hundreds
      constexpr std::size_t shown_name = 100;
      for (const KernelResources& known : module.kernels) {
        if (names.size() <= most_names) names.push_back(one_line(known.name, shown_name));
      }
      if (names.size() > most_names) names.resize(most_names), names.emplace_back("…");
      return Error{place + ".kernel: no kernel \"" + launch->kernel + "\" in the source; " +
                   (names.empty()
                        ? std::string("it has none")
                        : "it has " + joined(names) + " (a plain name needs extern \"C\")")};
    }
    if (auto checked = check_arguments(*launch, *kernel, place); !checked) return checked;
  }
  return Ok{};
}

}  // namespace rekernel

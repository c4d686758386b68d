#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/candidate/candidate.h"
#include "ops/program.h"
#include "ops/result.h"

namespace rekernel {

struct KernelParameter {
  std::int64_t offset = 0;  ///< bytes, in the machine code's layout: not that of a C struct
  std::int64_t size = 0;    ///< bytes
};

/// What the compiler says of one kernel of a program.
struct KernelResources {
  std::string name;
  int registers = 0;
  std::int64_t static_shared_bytes = 0;
  std::int64_t stack_bytes = 0;
  std::int64_t spill_store_bytes = 0;
  std::int64_t spill_load_bytes = 0;
  std::vector<KernelParameter> parameters;
};

struct CompiledProgram {
  std::string cubin;
  std::vector<KernelResources> kernels;
  std::string log;                       ///< warnings and the assembler's report
  std::vector<CompiledProgram> modules;  ///< the program's further modules
  bool from_cache = false;
  std::int64_t compile_ns = 0;  ///< 0 when from the cache

  /// In one of the modules; 0 is this one.
  const KernelResources* find(std::string_view kernel, int module = 0) const;
};

/// NVRTC, loaded at run time. Needs no GPU and is safe to use from several threads.
class Compiler {
 public:
  /// Finds NVRTC and the CUDA headers; the error says where was looked.
  static Result<Compiler> load();

  /// "13.0"
  std::string version() const;

  /// Whether it makes code for a target: an older NVRTC does not know the newest chips.
  bool knows(const std::string& target) const;

  /// The machine code target for a device of this compute capability: sm_89, sm_90a, …
  static std::string target_for_device(int major, int minor);

  /// Compiles `program.source` for `target` ("sm_80", "sm_90a"), in this process: for our own
  /// programs, and inside the child that compiles a candidate. `problem_header` is what
  /// `#include "problem.h"` finds. The error holds the compiler's log. PTX is assembled, machine
  /// code is read and must be for the target. Further modules are programs of their own here.
  /// Results of NVRTC are remembered, keyed by content, options, target and version.
  Result<CompiledProgram> compile(const Program& program, const std::string& problem_header,
                                  const std::string& target) const;

  /// The two ways that compile() goes: what is in the cache, and what is made again.
  std::optional<CompiledProgram> recall(const Program& program, const std::string& problem_header,
                                        const std::string& target) const;
  Result<CompiledProgram> compile_anew(const Program& program, const std::string& problem_header,
                                       const std::string& target) const;
  /// Puts what compile_anew() made into the cache.
  void remember(const Program& program, const std::string& problem_header,
                const std::string& target, const CompiledProgram& compiled) const;

 private:
  struct State;
  explicit Compiler(std::shared_ptr<const State> state);
  std::string cache_name(const Program& program, const std::string& problem_header,
                         const std::string& target) const;
  std::shared_ptr<const State> state_;
};

/// NVRTC's options that do not depend on the machine: the language, and what the plan asks for.
std::vector<std::string> source_options(const CompileOptions& options);

/// A program from its machine code and the compiler's log, which may come from a child.
Result<CompiledProgram> program_from(std::string cubin, std::string log);

/// Whether no module of a program is machine code for other chips than the target's.
bool may_run_on(const Program& program, const std::string& target);

/// What is worth reporting: all kernels of a source, but of captured modules, which hold a
/// library's hundreds, those that the plan launches.
std::vector<KernelResources> launched_kernels(const Program& program,
                                              const CompiledProgram& compiled);

/// The plan against what was compiled: each launch's kernel exists, the number and sizes of
/// arguments are those of its parameters, and the variables of the device code are not too large.
/// `where` starts the message.
Result<Ok> check_launches(const Program& program, const CompiledProgram& compiled,
                          const std::string& where);

}  // namespace rekernel

#include "harness/compile/compile_isolated.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/candidate/code.h"
#include "harness/compile/assemble.h"
#include "harness/problems/catalog.h"
#include "harness/process/sandbox.h"
#include "harness/process/system_calls.h"

namespace rekernel {

namespace {

/// A limit of addresses. No committed kernel takes half a gigabyte.
constexpr std::int64_t memory_bytes = std::int64_t{2} << 30;

/// What a compiler may say: of an error, and beside all modules of a program together. NVRTC's side
/// shortens its logs to less; this is for a compiler that was taken over.
constexpr std::size_t most_message_bytes = 64u << 10;
constexpr std::size_t most_log_bytes = 512u << 10;

/// A third of the deadline, on the one core that NVRTC uses: what never ends has the same verdict
/// on an idle machine and on a busy one, long before it has filled its memory.
std::chrono::seconds processor_time(std::chrono::milliseconds deadline) {
  return std::max(std::chrono::duration_cast<std::chrono::seconds>(deadline / 3),
                  std::chrono::seconds(1));
}

constexpr const char* compiled_word = "compiled";
constexpr const char* failure_word = "failure";

/// Target, header, code, which modules are asked for ('1' or '0' each), fast_math, max_registers,
/// then names and values of the defines.
std::string request_of(const Program& program, const std::string& asked,
                       const std::string& problem_header, const std::string& target) {
  const CompileOptions& options = program.compile;
  Fields fields = {target,
                   problem_header,
                   code_fields(program),
                   asked,
                   options.fast_math ? "1" : "",
                   options.max_registers ? std::to_string(*options.max_registers) : ""};
  for (const auto& [name, value] : options.defines) {
    fields.push_back(name);
    fields.push_back(value);
  }
  return joined_fields(fields);
}

struct Request {
  Program program;
  std::string asked;
  std::string problem_header;
  std::string target;
};

std::optional<Request> read_request(std::string_view bytes) {
  const std::optional<Fields> fields = split_fields(bytes);
  if (!fields || fields->size() < 6 || fields->size() % 2 != 0) return std::nullopt;
  Request request;
  request.target = (*fields)[0];
  request.problem_header = (*fields)[1];
  Result<std::vector<Code>> code = code_from_fields((*fields)[2]);
  if (!code || code->size() != (*fields)[3].size()) return std::nullopt;
  set_code(request.program, *std::move(code));
  request.asked = (*fields)[3];
  CompileOptions& options = request.program.compile;
  options.fast_math = !(*fields)[4].empty();
  if (!(*fields)[5].empty()) options.max_registers = std::stoi((*fields)[5]);
  for (std::size_t i = 6; i < fields->size(); i += 2) {
    options.defines[(*fields)[i]] = (*fields)[i + 1];
  }
  return request;
}

CompileOutcome verdict(Status status, std::string message) {
  return {std::nullopt, status, std::move(message)};
}

CompileOutcome compiled_outcome(CompiledProgram program) {
  return {std::move(program), Status::compile_failed, {}};
}

/// The first one with the others as its further modules.
CompiledProgram as_one_program(std::vector<CompiledProgram> modules) {
  CompiledProgram program = std::move(modules.at(0));
  for (std::size_t i = 1; i < modules.size(); ++i) {
    program.compile_ns += modules[i].compile_ns;
    program.modules.push_back(std::move(modules[i]));
  }
  return program;
}

/// A verdict on one module names its file, where it is not the first.
CompileOutcome verdict_on(const Program& module, std::size_t index, const Error& error) {
  return verdict(Status::compile_failed,
                 (index > 0 ? code_file(module.language, index) + ": " : "") + error.message);
}

/// The modules that are asked for, as modules of one program.
Result<CompileOutcome> answer_to(const Request& request) {
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  std::vector<CompiledProgram> compiled;
  for (std::size_t i = 0; i < request.asked.size(); ++i) {
    if (request.asked[i] != '1') continue;
    const Program module = module_program(request.program, i);
    if (module.language == Language::ptx) {
      if (Result<Ok> found = find_assembler(); !found) return found.error();
    }
    Result<CompiledProgram> one =
        compiler->compile_anew(module, request.problem_header, request.target);
    if (!one) return verdict_on(module, i, one.error());
    compiled.push_back(*std::move(one));
  }
  return compiled_outcome(as_one_program(std::move(compiled)));
}

/// Whole seconds as such, for a message.
CompileOutcome too_much_machine_code() {
  return verdict(Status::compile_failed, "the machine code is larger than " +
                                             std::to_string(largest_result >> 20) + " MiB");
}

Error malformed_answer() { return Error{"the compiler's answer is malformed"}; }

/// A compiler that ended without an answer met a program that it cannot take.
CompileOutcome verdict_of_dead_child(const ChildOutcome& outcome,
                                     std::chrono::milliseconds deadline) {
  const std::string words = outcome.last_words.empty() ? "" : ": " + outcome.last_words;
  const std::string limits =
      " (it may use " + std::to_string(memory_bytes >> 30) + " GiB of memory)" + words;
  switch (outcome.end) {
    case ChildOutcome::End::deadline:
      return verdict(Status::timed_out, "not compiled within " + seconds_text(deadline));
    case ChildOutcome::End::result_too_long:
      return too_much_machine_code();
    case ChildOutcome::End::signalled:
      if (outcome.code == SIGXCPU) {
        return verdict(
            Status::timed_out,
            "not compiled within " + seconds_text(processor_time(deadline)) + " of processor time");
      }
      return verdict(Status::compile_failed,
                     std::string("the compiler died of ") + ::strsignal(outcome.code) + limits);
    case ChildOutcome::End::exited:
    case ChildOutcome::End::stopped:
      break;
  }
  return verdict(Status::compile_failed,
                 "the compiler gave up with status " + std::to_string(outcome.code) + limits);
}

ChildCommand command_for(std::string request, std::chrono::milliseconds deadline) {
  ChildCommand command;
  command.arguments = {own_executable(), "compile-worker"};
  command.input = std::move(request);
  command.deadline = deadline;
  command.limits.processor_time = processor_time(deadline);
  command.limits.file_bytes = 0;
  command.limits.address_space_bytes = memory_bytes;
  return command;
}

/// In a child: what is asked for, as the modules of one program.
Result<CompileOutcome> compile_in_child(const Program& program, const std::string& asked,
                                        const std::string& problem_header,
                                        const std::string& target,
                                        std::chrono::milliseconds deadline) {
  const Result<ChildOutcome> child =
      run_sandboxed(command_for(request_of(program, asked, problem_header, target), deadline),
                    SandboxDevices::none);
  if (!child) return child.error();
  if (child->end != ChildOutcome::End::exited || child->code != 0) {
    return verdict_of_dead_child(*child, deadline);
  }
  return compile_outcome_from(child->result);
}

std::vector<CompiledProgram> modules_of(CompiledProgram program) {
  std::vector<CompiledProgram> modules = std::move(program.modules);
  program.modules.clear();
  modules.insert(modules.begin(), std::move(program));
  return modules;
}

}  // namespace

Result<CompileOutcome> compile_isolated(const Compiler& compiler, const Program& program,
                                        const std::string& problem_header,
                                        const std::string& target,
                                        std::chrono::milliseconds deadline) {
  const std::size_t count = 1 + program.modules.size();
  std::vector<CompiledProgram> modules(count);
  std::string asked(count, '0');
  for (std::size_t i = 0; i < count; ++i) {
    auto found = compiler.recall(module_program(program, i), problem_header, target);
    if (found) {
      modules[i] = *std::move(found);
    } else {
      asked[i] = '1';
    }
  }
  const auto missing = static_cast<std::size_t>(std::count(asked.begin(), asked.end(), '1'));
  if (missing > 0) {
    Result<CompileOutcome> outcome =
        compile_in_child(program, asked, problem_header, target, deadline);
    if (!outcome || !outcome->program) return outcome;
    std::vector<CompiledProgram> made = modules_of(*std::move(outcome->program));
    if (made.size() != missing) return malformed_answer();
    for (std::size_t i = 0, next = 0; i < count; ++i) {
      if (asked[i] != '1') continue;
      modules[i] = std::move(made[next++]);
      compiler.remember(module_program(program, i), problem_header, target, modules[i]);
    }
  }
  std::size_t bytes = 0;
  for (CompiledProgram& module : modules) {
    bytes += module.cubin.size();
    module.log = visible_lines(module.log, most_log_bytes / count);
  }
  if (bytes > largest_result) return too_much_machine_code();
  return compiled_outcome(as_one_program(std::move(modules)));
}

Result<CompileOutcome> compile_candidate(const Compiler& compiler, const Candidate& candidate,
                                         const std::string& target, const std::string& where,
                                         std::chrono::milliseconds deadline) {
  const Result<std::shared_ptr<const Problem>> problem = problem_of(candidate);
  if (!problem) return problem.error();
  Result<CompileOutcome> outcome =
      compile_isolated(compiler, candidate.program, problem_header(**problem), target, deadline);
  if (!outcome || !outcome->program) return outcome;
  const Result<Ok> launches = check_launches(candidate.program, *outcome->program, where);
  if (!launches) return verdict(Status::invalid_plan, launches.error().message);
  return outcome;
}

int run_compile_worker() {
  constexpr int no_answer = 2;
  if (::fcntl(result_descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    return no_answer;  // started by hand: there is no pipe to answer to
  }
  if (!sandbox_is_refused()) (void)lock_down().ok();
  std::string answer;
  try {
    const std::optional<Request> request = read_request(read_all(STDIN_FILENO));
    if (!request) return no_answer;
    answer = to_fields(answer_to(*request));
  } catch (const std::exception& error) {  // out of memory, mostly
    (void)write_all(STDERR_FILENO, std::string(error.what()) + "\n");
    ::_exit(no_answer);
  }
  // NVRTC's own destructors need not run.
  ::_exit(write_all(result_descriptor, answer) ? 0 : no_answer);
}

std::string to_fields(const Result<CompileOutcome>& outcome) {
  if (!outcome) return joined_fields({failure_word, outcome.error().message});
  if (!outcome->program) return joined_fields({to_string(outcome->status), outcome->message});
  const CompiledProgram& program = *outcome->program;
  Fields fields = {compiled_word, program.log, program.cubin, std::to_string(program.compile_ns)};
  for (const CompiledProgram& further : program.modules) {
    fields.push_back(further.log);
    fields.push_back(further.cubin);
  }
  return joined_fields(fields);
}

/// One module of an answer, whose texts are a stranger's.
Result<CompiledProgram> read_module(const std::string& cubin, const std::string& log,
                                    std::size_t modules) {
  return program_from(cubin, visible_lines(log, most_log_bytes / modules));
}

Result<CompileOutcome> compile_outcome_from(std::string_view bytes) {
  const std::optional<Fields> fields = split_fields(bytes);
  if (!fields || fields->size() < 2) return malformed_answer();
  if (fields->front() == failure_word) {
    return Error{visible_lines((*fields)[1], most_message_bytes)};
  }
  if (fields->front() == compiled_word && fields->size() >= 4 && fields->size() % 2 == 0) {
    const std::size_t modules = (fields->size() - 2) / 2;
    Result<CompiledProgram> program = read_module((*fields)[2], (*fields)[1], modules);
    if (!program) return verdict(Status::compile_failed, program.error().message);
    program->compile_ns = std::strtoll((*fields)[3].c_str(), nullptr, 10);
    for (std::size_t i = 4; i < fields->size(); i += 2) {
      Result<CompiledProgram> further = read_module((*fields)[i + 1], (*fields)[i], modules);
      if (!further) return verdict(Status::compile_failed, further.error().message);
      program->modules.push_back(*std::move(further));
    }
    return compiled_outcome(*std::move(program));
  }
  for (const Status status : {Status::compile_failed, Status::timed_out, Status::invalid_plan}) {
    if (fields->front() == to_string(status)) {
      return verdict(status, visible_lines((*fields)[1], most_message_bytes));
    }
  }
  return malformed_answer();
}

}  // namespace rekernel

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
#include "harness/candidate/code.h"
#include "harness/compile/assemble.h"
#include "harness/process/sandbox.h"
#include "harness/process/system_calls.h"
#include "ops/catalog.h"

namespace rekernel {

namespace {

/// Of addresses. No committed kernel takes half a gigabyte.
constexpr std::int64_t memory_bytes = std::int64_t{2} << 30;

/// A third of the deadline, on the one core that NVRTC uses: what never ends has the same verdict
/// on an idle machine and on a busy one, long before it has filled its memory.
std::chrono::seconds processor_time(std::chrono::milliseconds deadline) {
  return std::max(std::chrono::duration_cast<std::chrono::seconds>(deadline / 3),
                  std::chrono::seconds(1));
}

constexpr const char* compiled_word = "compiled";
constexpr const char* failure_word = "failure";

/// Target, header, code, fast_math, max_registers, then names and values of the defines.
std::string request_of(const Program& program, const std::string& problem_header,
                       const std::string& target) {
  const CompileOptions& options = program.compile;
  Fields fields = {target, problem_header, code_fields(program), options.fast_math ? "1" : "",
                   options.max_registers ? std::to_string(*options.max_registers) : ""};
  for (const auto& [name, value] : options.defines) {
    fields.push_back(name);
    fields.push_back(value);
  }
  return joined_fields(fields);
}

struct Request {
  Program program;
  std::string problem_header;
  std::string target;
};

std::optional<Request> read_request(std::string_view bytes) {
  const std::optional<Fields> fields = split_fields(bytes);
  if (!fields || fields->size() < 5 || fields->size() % 2 == 0) return std::nullopt;
  Request request;
  request.target = (*fields)[0];
  request.problem_header = (*fields)[1];
  Result<std::vector<Code>> code = code_from_fields((*fields)[2]);
  if (!code) return std::nullopt;
  set_code(request.program, *std::move(code));
  CompileOptions& options = request.program.compile;
  options.fast_math = !(*fields)[3].empty();
  if (!(*fields)[4].empty()) options.max_registers = std::stoi((*fields)[4]);
  for (std::size_t i = 5; i < fields->size(); i += 2) {
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

Result<CompileOutcome> answer_to(const Request& request) {
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  if (request.program.language == Language::ptx) {
    if (Result<Ok> found = find_assembler(); !found) return found.error();
  }
  Result<CompiledProgram> compiled =
      compiler->compile_anew(request.program, request.problem_header, request.target);
  if (!compiled) return verdict(Status::compile_failed, compiled.error().message);
  return compiled_outcome(*std::move(compiled));
}

/// Whole seconds as such, for a message.
std::string seconds_text(std::chrono::milliseconds time) {
  const std::string text = std::to_string(time.count() / 1000);
  const auto rest = time.count() % 1000;
  return text + (rest ? "." + std::to_string(1000 + rest).substr(1) : "") + " s";
}

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
      return verdict(Status::compile_failed, "the machine code is larger than " +
                                                 std::to_string(largest_result >> 20) + " MiB");
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

}  // namespace

namespace {

/// One module, without a plan.
Result<CompileOutcome> compile_module(const Compiler& compiler, const Program& program,
                                      const std::string& problem_header, const std::string& target,
                                      std::chrono::milliseconds deadline) {
  if (auto found = compiler.recall(program, problem_header, target)) {
    return compiled_outcome(*std::move(found));
  }
  const Result<ChildOutcome> child = run_sandboxed(
      command_for(request_of(program, problem_header, target), deadline), SandboxDevices::none);
  if (!child) return child.error();
  if (child->end != ChildOutcome::End::exited || child->code != 0) {
    return verdict_of_dead_child(*child, deadline);
  }
  Result<CompileOutcome> outcome = compile_outcome_from(child->result);
  if (outcome && outcome->program) {
    compiler.remember(program, problem_header, target, *outcome->program);
  }
  return outcome;
}

}  // namespace

Result<CompileOutcome> compile_isolated(const Compiler& compiler, const Program& program,
                                        const std::string& problem_header,
                                        const std::string& target,
                                        std::chrono::milliseconds deadline) {
  Result<CompileOutcome> outcome =
      compile_module(compiler, module_program(program, 0), problem_header, target, deadline);
  for (std::size_t i = 1; i <= program.modules.size(); ++i) {
    if (!outcome || !outcome->program) break;
    const Program further = module_program(program, i);
    Result<CompileOutcome> compiled =
        compile_module(compiler, further, problem_header, target, deadline);
    if (!compiled) return compiled;
    if (!compiled->program) {
      compiled->message = code_file(further.language, i) + ": " + compiled->message;
      return compiled;
    }
    outcome->program->compile_ns += compiled->program->compile_ns;
    outcome->program->modules.push_back(*std::move(compiled->program));
  }
  return outcome;
}

Result<CompileOutcome> compile_candidate(const Compiler& compiler, const Candidate& candidate,
                                         const std::string& target, const std::string& where,
                                         std::chrono::milliseconds deadline) {
  const std::string header = problem_header(*find_problem(candidate.problem));
  Result<CompileOutcome> outcome =
      compile_isolated(compiler, candidate.program, header, target, deadline);
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

Result<CompileOutcome> compile_outcome_from(std::string_view bytes) {
  const Error malformed{"the compiler's answer is malformed"};
  const std::optional<Fields> fields = split_fields(bytes);
  if (!fields || fields->size() < 2) return malformed;
  if (fields->front() == failure_word) return Error{(*fields)[1]};
  if (fields->front() == compiled_word && fields->size() >= 4 && fields->size() % 2 == 0) {
    Result<CompiledProgram> program = program_from((*fields)[2], (*fields)[1]);
    if (!program) return verdict(Status::compile_failed, program.error().message);
    program->compile_ns = std::strtoll((*fields)[3].c_str(), nullptr, 10);
    for (std::size_t i = 4; i < fields->size(); i += 2) {
      Result<CompiledProgram> further = program_from((*fields)[i + 1], (*fields)[i]);
      if (!further) return verdict(Status::compile_failed, further.error().message);
      program->modules.push_back(*std::move(further));
    }
    return compiled_outcome(*std::move(program));
  }
  for (const Status status : {Status::compile_failed, Status::timed_out, Status::invalid_plan}) {
    if (fields->front() == to_string(status)) return verdict(status, (*fields)[1]);
  }
  return malformed;
}

}  // namespace rekernel

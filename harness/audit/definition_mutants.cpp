#include "harness/audit/definition_mutants.h"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "harness/audit/constants.h"
#include "harness/base/parallel.h"
#include "harness/device/buffers.h"
#include "harness/device/device_tools.h"
#include "harness/device/own_program.h"
#include "harness/evaluation/check.h"
#include "ops/definition/device_code.h"

namespace rekernel {

namespace {

constexpr int own_draws = 2;
constexpr std::uint64_t first_seed = 0x5eed;

/// A kernel whose results are judged: the slow candidate, or one of a wrong definition. With a
/// constant it is the slow candidate, one of whose outputs is overwritten.
struct Subject {
  const Program* program = nullptr;
  const CompiledProgram* compiled = nullptr;
  std::optional<Constant> constant;
  std::string kind;
  std::string what;
  std::optional<Rejection> rejection;  ///< on the problem's own inputs
  std::optional<Rejection> on_stress;
  double strict_ratio = 0;
  /// Largest and rms error by case, relative to the truth's rms.
  std::vector<std::pair<double, double>> errors;
};

struct Case {
  std::uint64_t seed = 0;
  const StressCase* stress = nullptr;
};

/// The problem on the device, and what judges there.
class DefinitionBench {
 public:
  DefinitionBench(const Problem& problem, const Compiler& compiler, const Device& device,
                  std::size_t threads)
      : problem_(problem), compiler_(compiler), device_(device), threads_(threads) {}

  Result<DefinitionAudit> audit() {
    programs_.push_back(problem_.scaffold);
    std::vector<Subject> subjects(1);
    for (const definition::DefinitionMutant& mutant :
         definition::definition_mutants(*problem_.definition)) {
      programs_.push_back(
          definition::device_program(mutant.definition, definition::Purpose::candidate));
      Subject& subject = subjects.emplace_back();
      subject.kind = mutant.kind;
      subject.what = mutant.what;
    }
    if (auto compiled = compile(); !compiled) return compiled.error();
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      subjects[i].program = &programs_[i];
      subjects[i].compiled = &compiled_[i];
    }
    DefinitionAudit audit;
    audit.problem = problem_.id;
    run(subjects, audit.stress_left_out);
    const Subject& honest = subjects[0];
    audit.passed = !honest.rejection;
    if (honest.rejection) audit.why = honest.rejection->message;
    audit.strict = audit.passed && honest.strict_ratio <= 1;
    audit.robust = audit.passed && !honest.on_stress;
    if (audit.passed && honest.on_stress) audit.why = honest.on_stress->message;
    for (std::size_t i = 1; i < subjects.size(); ++i) {
      audit.mutants.push_back(judged(subjects[i], honest, audit));
    }
    return audit;
  }

 private:
  /// Our own programs, and those of the subjects.
  Result<Ok> compile() {
    const std::string target = target_of_device();
    const std::string header = problem_header(problem_);
    std::vector<const Program*> programs = {&problem_.device_oracle};
    if (!problem_.making.steps.empty()) programs.push_back(&problem_.making);
    for (const Invariant& one : problem_.invariants) programs.push_back(&one.program);
    const std::size_t own = programs.size();
    for (const Program& program : programs_) programs.push_back(&program);
    std::vector<std::optional<Result<CompiledProgram>>> results(programs.size());
    for_each_in_parallel(programs.size(), static_cast<unsigned>(threads_), [&](std::size_t i) {
      results[i] = compiler_.compile(*programs[i], header, target);
    });
    for (const auto& result : results) {
      if (!*result) return result->error();
    }
    for (std::size_t i = 0; i < programs.size(); ++i) {
      (i < own ? own_ : compiled_).push_back(std::move(**results[i]));
    }
    Result<CompiledProgram> tools = compiler_.compile(device_tools_program(), header, target);
    if (!tools) return tools.error();
    tools_ = std::move(*tools);
    return Ok{};
  }

  std::string target_of_device() const {
    const DeviceProperties& properties = device_.properties();
    return Compiler::target_for_device(properties.major, properties.minor);
  }

  void run(std::vector<Subject>& subjects, std::vector<std::string>& left_out) {
    const Stream stream;
    const DeviceProperties& properties = device_.properties();
    const DeviceTools tools(tools_, properties);
    const bool is_made = !problem_.making.steps.empty();
    const InputBuffers::Making making{own_[is_made ? 1 : 0], properties};
    const InputBuffers inputs(problem_, tools, Surroundings::nothing, is_made ? &making : nullptr);
    const SubjectBuffers outputs(problem_, {}, Surroundings::nothing);
    std::vector<CompiledInvariant> invariants;
    for (std::size_t i = 0; i < problem_.invariants.size(); ++i) {
      invariants.push_back({&problem_.invariants[i], own_[(is_made ? 2 : 1) + i]});
    }
    Checker checker(problem_, inputs, tools, {&own_[0], nullptr}, invariants, properties, stream);
    const auto make_outputs = [&](const Subject& subject) {
      outputs.poison(poison_byte, stream);
      Bindings bindings = inputs.bindings();
      bindings.insert(outputs.bindings().begin(), outputs.bindings().end());
      const OwnProgram program(*subject.program, *subject.compiled, std::move(bindings),
                               properties);
      program.enqueue(stream);
      stream.synchronize();
      if (subject.constant) fill(outputs.outputs().at(subject.constant->output), *subject.constant);
    };
    // The constants are right for other inputs than those that are judged.
    inputs.fill(first_seed - 1, nullptr, stream);
    make_outputs(subjects[0]);
    for (const Constant& constant : best_constants(problem_, outputs.outputs())) {
      Subject subject = subjects.front();
      subject.constant = constant;
      subject.kind = "the best constant";
      subject.what = to_text(constant);
      subjects.push_back(std::move(subject));
    }
    for (const Case& one : cases()) {
      inputs.fill(one.seed, one.stress, stream);
      const Checker::SameInputs same(checker);
      for (Subject& subject : subjects) {
        make_outputs(subject);
        for (const auto& [name, view] : outputs.outputs()) {
          REKERNEL_CUDA(cuMemcpyDtoDAsync(checker.snapshots().at(name).pointer, view.pointer,
                                          static_cast<std::size_t>(view.bytes), stream.get()));
        }
        const Judgement judgement = checker.judge(outputs, one.stress);
        if (!judgement.has_finite_truth) {
          left_out.push_back(one.stress->name);
          break;
        }
        note(subject, judgement, one.stress);
      }
    }
  }

  static void note(Subject& subject, const Judgement& judgement, const StressCase* stress) {
    std::optional<Rejection>& place = stress ? subject.on_stress : subject.rejection;
    if (judgement.rejection && !place) place = judgement.rejection;
    if (!judgement.stats) return;
    const ErrorStats& stats = *judgement.stats;
    if (!stress) subject.strict_ratio = std::max(subject.strict_ratio, stats.worst_strict_ratio);
    const double size = stats.truth_rms > 0 ? stats.truth_rms : 1.0;
    subject.errors.emplace_back(stats.max_abs / size, stats.rms / size);
  }

  std::vector<Case> cases() const {
    std::vector<Case> cases;
    for (int i = 0; i < own_draws; ++i)
      cases.push_back({first_seed + static_cast<std::uint64_t>(i), nullptr});
    for (const StressCase& stress : problem_.stress_cases) cases.push_back({first_seed, &stress});
    return cases;
  }

  /// Within FP32's rounding, or as close as the slow candidate is, on all inputs.
  static bool is_equal(const Subject& subject, const Subject& honest) {
    constexpr double rounding = 2e-6, times = 3.0;
    if (subject.rejection || subject.on_stress || subject.errors.size() != honest.errors.size())
      return false;
    for (std::size_t i = 0; i < subject.errors.size(); ++i) {
      const auto [largest, rms] = subject.errors[i];
      const auto [honest_largest, honest_rms] = honest.errors[i];
      if (!(rms <= std::max(rounding, times * honest_rms))) return false;
      if (!(largest <= std::max(10 * rounding, times * honest_largest))) return false;
    }
    return true;
  }

  static JudgedMutant judged(const Subject& subject, const Subject& honest,
                             const DefinitionAudit& audit) {
    JudgedMutant one;
    one.kind = subject.kind;
    one.what = subject.what;
    if (subject.rejection) {
      one.fate = MutantFate::refused;
      one.why = subject.rejection->message;
    } else if (audit.robust && subject.on_stress) {
      one.fate = MutantFate::lost_badge;
      one.why = "robust: " + subject.on_stress->message;
    } else if (audit.strict && !(subject.strict_ratio <= 1)) {
      one.fate = MutantFate::lost_badge;
      one.why = "strict";
    } else {
      one.fate = is_equal(subject, honest) ? MutantFate::equal : MutantFate::missed;
    }
    return one;
  }

  const Problem& problem_;
  const Compiler& compiler_;
  const Device& device_;
  std::size_t threads_;
  CompiledProgram tools_;
  /// The truth, the making if there is one, the invariants.
  std::vector<CompiledProgram> own_;
  /// Of the slow candidate and of the mutants.
  std::vector<Program> programs_;
  std::vector<CompiledProgram> compiled_;
};

}  // namespace

const char* to_string(MutantFate fate) {
  switch (fate) {
    case MutantFate::refused:
      return "refused";
    case MutantFate::lost_badge:
      return "lost_badge";
    case MutantFate::missed:
      return "missed";
    case MutantFate::equal:
      return "equal";
  }
  return "";
}

std::int64_t DefinitionAudit::count(MutantFate fate) const {
  return std::count_if(mutants.begin(), mutants.end(),
                       [&](const JudgedMutant& one) { return one.fate == fate; });
}

std::int64_t DefinitionAudit::kinds() const {
  std::set<std::string> found;
  for (const JudgedMutant& one : mutants) {
    if (one.fate != MutantFate::equal) found.insert(one.kind);
  }
  return static_cast<std::int64_t>(found.size());
}

double DefinitionAudit::caught() const {
  const std::int64_t caught = count(MutantFate::refused) + count(MutantFate::lost_badge);
  const std::int64_t all = caught + count(MutantFate::missed);
  return all == 0 ? 1.0 : static_cast<double>(caught) / static_cast<double>(all);
}

Result<DefinitionAudit> audit_definition(const Problem& problem, const Compiler& compiler,
                                         const Device& device, std::size_t threads) {
  return DefinitionBench(problem, compiler, device, threads).audit();
}

}  // namespace rekernel

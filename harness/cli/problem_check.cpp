#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "harness/base/json.h"
#include "harness/base/parallel.h"
#include "harness/base/text.h"
#include "harness/candidate/arch.h"
#include "harness/cli/command.h"
#include "harness/cli/problem.h"
#include "harness/compile/compile.h"
#include "harness/evaluation/speed_of_light.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/problems/problem_file.h"
#include "harness/problems/sizes.h"
#include "harness/problems/small_instance.h"
#include "harness/project/root.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/labelled.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/suggestion.h"
#include "harness/terminal/tables.h"
#include "ops/inputs.h"
#include "reference/agreement.h"

namespace rekernel {

namespace {

namespace po = boost::program_options;
namespace json = boost::json;

constexpr std::string_view shown_device = "NVIDIA H200";
constexpr std::uint64_t host_seed = 1;
constexpr std::chrono::seconds host_deadline{120};

/// What trying a problem showed. Each part is empty where there is nothing to complain of.
struct ProblemCheck {
  std::string file;
  Problem problem;
  std::optional<Problem> small;
  std::string small_failure;  ///< why the definition does not run at small sizes
  std::string no_small;       ///< why there are none: nothing was run on the host
  std::vector<std::string> compile_failures;
  std::string not_compiled;  ///< why nothing was compiled
  std::vector<Agreement> agreements;
  std::string pytorch_failure;  ///< of the expression
  std::string no_pytorch;       ///< why it was not asked

  bool good() const {
    return small_failure.empty() && compile_failures.empty() && pytorch_failure.empty() &&
           std::all_of(agreements.begin(), agreements.end(),
                       [](const Agreement& one) { return one.agrees(); });
  }
};

std::int64_t speed_of_light_on_shown_device(const Problem& problem) {
  const KnownDevice* known = find_known_device(shown_device);
  if (!known) return 0;
  Bench of_device;
  of_device.device_name = known->name;
  of_device.sm = known->sm;
  of_device.multiprocessors = known->multiprocessors;
  of_device.l2_bytes = known->l2_bytes;
  of_device.clock_khz = known->clock_khz;
  of_device.memory_clock_khz = known->memory_clock_khz;
  of_device.memory_bus_bits = known->memory_bus_bits;
  return speed_of_light_ns(problem, device_of(of_device));
}

constexpr const char* own_sizes_alone =
    "it has its own sizes alone (no \"other_sizes\"), which are large";

struct HostValues {
  HostInputs inputs, truth;
};

/// The definition at a small size. What it makes there is what it makes at any size.
std::optional<HostValues> run_small(ProblemCheck& check) {
  if (check.problem.program) {
    check.no_small = "a program gives the truth, on the device";
    return std::nullopt;
  }
  Result<Problem> small = small_instance(check.problem);
  if (!small) {
    // A problem may have its own sizes alone.
    if (check.problem.other_sizes.empty()) {
      check.no_small = own_sizes_alone;
    } else {
      check.small_failure = small.error().message;
    }
    return std::nullopt;
  }
  check.small = std::move(*small);
  try {
    HostValues values;
    values.inputs = host_inputs(*check.small, host_seed);
    values.truth = check.small->host_oracle(values.inputs);
    return values;
  } catch (const std::out_of_range& failure) {
    check.small_failure = failure.what();
    return std::nullopt;
  }
}

/// Of all that is made of a problem, for each target.
void compile_made_code(ProblemCheck& check) {
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) {
    check.not_compiled = compiler.error().message;
    return;
  }
  struct Job {
    std::string what;
    const Program* program;
    std::string target;
    std::string failure = {};
  };
  const Problem& problem = check.problem;
  std::vector<Job> jobs;
  for (const Arch arch : Arch::all()) {
    const std::string target = to_string(arch);
    if (!problem.program) jobs.push_back({"truth", &problem.device_oracle, target});
    jobs.push_back({"slow candidate", &problem.scaffold, target});
    if (!problem.making.steps.empty()) jobs.push_back({"made inputs", &problem.making, target});
    for (const Invariant& invariant : problem.invariants) {
      jobs.push_back({"invariant '" + invariant.name + "'", &invariant.program, target});
    }
  }
  const std::string header = problem_header(problem);
  for_each_in_parallel(jobs.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    Job& job = jobs[i];
    Program program = *job.program;
    program.compile.for_an_answer_alone = true;
    const Result<CompiledProgram> compiled = compiler->compile(program, header, job.target);
    const Result<Ok> fits = compiled ? check_launches(*job.program, *compiled, job.target)
                                     : Result<Ok>(compiled.error());
    if (!fits) job.failure = job.what + " for " + job.target + ": " + fits.error().message;
  });
  for (const Job& job : jobs) {
    if (!job.failure.empty()) check.compile_failures.push_back(job.failure);
  }
}

/// Compares definitions with PyTorch's expressions, in a process that serves one file after
/// another.
class PytorchOnTheHost {
 public:
  void compare(ProblemCheck& check, const HostValues& values) {
    if (!installed_) {
      check.no_pytorch = "python3 here cannot import torch";
      return;
    }
    if (!process_) {
      auto started = AgreementProcess::start(AgreementProcess::Place::cpu);
      if (!started) {
        check.no_pytorch = started.error().message;
        return;
      }
      process_ = std::move(*started);
    }
    auto agreements =
        pytorch_agreement(*process_, *check.small, values.inputs, values.truth, host_deadline);
    if (agreements) {
      check.agreements = std::move(*agreements);
    } else {
      check.pytorch_failure = agreements.error().message;
      process_.reset();  // it may have ended
    }
  }

 private:
  bool installed_ = pytorch_is_installed();
  std::unique_ptr<AgreementProcess> process_;
};

std::string cost_text(const Problem& problem) {
  std::string text = printed("%.3g", static_cast<double>(problem.operations)) + " operations, " +
                     printed("%.3g", static_cast<double>(problem.min_bytes)) + " bytes";
  if (problem.least_bytes != problem.min_bytes) {
    text += " (at least " + printed("%.3g", static_cast<double>(problem.least_bytes)) + ")";
  }
  if (problem.matrix_products > 0) {
    text += ", for matrix units, " +
            counted(static_cast<std::size_t>(problem.matrix_products), "FP16 product") +
            " for each of its own";
  }
  const std::int64_t least = speed_of_light_on_shown_device(problem);
  return text + "; speed of light on an " + std::string(shown_device) + ": " +
         (least > 0 ? milliseconds(least) + " ms" : "no bound");
}

std::string tolerance_text(const Problem& problem) {
  std::vector<std::string> stress, invariants;
  for (const StressCase& one : problem.stress_cases) stress.push_back(one.name);
  for (const Invariant& one : problem.invariants) invariants.push_back(one.name);
  const Tolerance& tolerance = problem.tolerance;
  return "errors up to " + printed("%.2g", tolerance.rms_error_over_rms) +
         " (root mean square) and " + printed("%.2g", tolerance.max_error_over_rms) +
         " (largest) of the truth's root mean square; stress inputs: " +
         (stress.empty() ? "none" : joined(stress)) +
         (invariants.empty() ? "" : "; invariants: " + joined(invariants));
}

std::string definition_text(const ProblemCheck& check) {
  if (!check.small_failure.empty()) return check.small_failure;
  if (check.problem.program) return check.no_small;
  if (!check.no_small.empty()) return "not run on the host: " + check.no_small;
  return "runs on the host at " +
         (check.small->other_sizes.empty() ? "its own sizes" : sizes_text(sizes_of(*check.small)));
}

std::string device_code_text(const ProblemCheck& check) {
  if (!check.not_compiled.empty()) return "not compiled: " + check.not_compiled;
  if (!check.compile_failures.empty()) return joined(check.compile_failures, "\n");
  std::vector<std::string> targets;
  for (const Arch arch : Arch::all()) targets.emplace_back(to_string(arch));
  return (check.problem.program ? "the empty candidate compiles for "
                                : "truth and slow candidate compile for ") +
         joined(targets);
}

std::string pytorch_text(const ProblemCheck& check) {
  if (!check.pytorch_failure.empty()) return check.pytorch_failure;
  if (!check.no_pytorch.empty()) return "not asked: " + check.no_pytorch;
  if (!check.no_small.empty()) return "not asked: " + check.no_small;
  if (check.agreements.empty()) return "not asked: the definition did not run";
  std::vector<std::string> words;
  bool all = true;
  for (const Agreement& one : check.agreements) {
    words.push_back(to_text(one));
    all &= one.agrees();
  }
  return (all ? "agrees (" : "DISAGREES (") + joined(words) + ")";
}

void print(const ProblemCheck& check) {
  std::cout << check.problem.id << ": " << check.problem.title << "\n"
            << labelled("work", cost_text(check.problem))
            << labelled("tolerance", tolerance_text(check.problem))
            << labelled(check.problem.program ? "truth" : "definition", definition_text(check))
            << labelled("device", device_code_text(check));
  if (!check.problem.program) std::cout << labelled("PyTorch", pytorch_text(check));
}

json::object to_json(const ProblemCheck& check) {
  const Problem& problem = check.problem;
  json::array stress, agreements;
  for (const StressCase& one : problem.stress_cases) stress.push_back(json::string(one.name));
  for (const Agreement& one : check.agreements) agreements.push_back(to_json(one));
  return {{"file", check.file},
          {"id", problem.id},
          {"title", problem.title},
          {"good", check.good()},
          {"operations", problem.operations},
          {"min_bytes", problem.min_bytes},
          {"least_bytes", problem.least_bytes},
          {"matrix_products", problem.matrix_products},
          {"speed_of_light_ns", speed_of_light_on_shown_device(problem)},
          {"tolerance",
           {{"rms", problem.tolerance.rms_error_over_rms},
            {"largest", problem.tolerance.max_error_over_rms}}},
          {"stress", std::move(stress)},
          {"definition", check.small_failure},
          {"not_run", check.no_small},
          {"compile", json::value_from(check.compile_failures)},
          {"not_compiled", check.not_compiled},
          {"pytorch",
           {{"failure", check.pytorch_failure},
            {"not_asked", check.no_pytorch},
            {"outputs", std::move(agreements)}}}};
}

Page problem_check_page() {
  Page page;
  page.description =
      "Reads problem files, runs their definitions on the host, compiles their device code and "
      "compares with PyTorch where that is installed. ops/problems/README.md says how such a file "
      "is written.";
  page.takes({"file", "FILE", "problem files", Count::some}, list_value("FILE", {Names::file}));
  page.examples = {{"rekernel problem check ops/problems/kernelbench1/rmsnorm.json"}};
  page.group("Output").add_options()("json", po::bool_switch(), "print the findings as JSON");
  page.statuses[1] = "a definition does not run, compile or agree";
  return page;
}

/// The problem of a file, or that there is none and which one may have been meant.
Result<Problem> named_problem_file(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return read_problem(file);
  std::vector<std::string> ids;
  for (const Problem& problem : catalog()) ids.push_back(problem.id);
  const std::string id = std::filesystem::path(file).stem().string();
  std::vector<std::string> files;
  for (const std::string& near : suggestions(id, ids)) {
    files.push_back("ops/problems/" + find_problem(near)->group + "/" + near + ".json");
  }
  return Error{file + ": no such file" + did_you_mean(files)};
}

}  // namespace

int problem_check_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, problem_check_page());
  if (parsed.exit_status) return *parsed.exit_status;

  // All files are read first: what cannot be read is said before anything is tried.
  std::vector<ProblemCheck> checks;
  int status = exit_good;
  for (const std::string& file : parsed.get<std::vector<std::string>>("file")) {
    Result<Problem> problem = named_problem_file(file);
    if (!problem) {
      status = bad_input(problem.error());
      continue;
    }
    checks.push_back({.file = file, .problem = std::move(*problem)});
  }
  PytorchOnTheHost pytorch;
  json::array findings;
  {
    Progress progress;
    for (std::size_t i = 0; i < checks.size(); ++i) {
      ProblemCheck& check = checks[i];
      if (checks.size() > 1) progress.step(i, checks.size(), check.problem.id);
      const std::optional<HostValues> values = run_small(check);
      compile_made_code(check);
      if (values) pytorch.compare(check, *values);
      if (!check.good()) status = std::max(status, exit_verdict_failed);
      findings.push_back(to_json(check));
    }
  }
  if (parsed.flag("json")) {
    std::cout << pretty_json(findings);
  } else {
    for (const ProblemCheck& check : checks) print(check);
  }
  return status;
}

}  // namespace rekernel

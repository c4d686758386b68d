#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <thread>

#include "harness/audit/definition_mutants.h"
#include "harness/base/json.h"
#include "harness/base/judging_sources.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/cli/problem.h"
#include "harness/compile/compile.h"
#include "harness/gpu/cuda.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/project/root.h"
#include "harness/records/made_mutants.h"
#include "harness/records/report.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace {

namespace po = boost::program_options;

/// Of those that count, what has to be caught: of a problem's, and of all together.
constexpr double least_share_of_a_problem = 0.90;
constexpr double least_share = 0.99;

MadeMutantsRow row_of(const Problem& problem, const Result<DefinitionAudit>& audit) {
  MadeMutantsRow row;
  row.problem = problem.id;
  row.digest = problem_digest(problem.text);
  row.measured = today();
  if (!audit) {
    row.failure = audit.error().message;
    return row;
  }
  row.passed = audit->passed;
  row.strict = audit->strict;
  row.robust = audit->robust;
  row.why = audit->why;
  row.stress_left_out = audit->stress_left_out;
  for (const JudgedMutant& mutant : audit->mutants) {
    if (mutant.fate == MutantFate::equal) {
      ++row.equal;
      continue;
    }
    auto& [caught, missed] = row.kinds[mutant.kind];
    ++(mutant.fate == MutantFate::missed ? missed : caught);
    if (mutant.fate == MutantFate::missed) row.missed.push_back(mutant.kind + ": " + mutant.what);
  }
  return row;
}

Result<MadeMutantsRecord> measure(const std::vector<const Problem*>& problems, int ordinal) {
  Progress progress;
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  const Result<GpuLock> lock = locked_gpu(ordinal, progress);
  if (!lock) return lock.error();
  const Result<Device> device = Device::open(ordinal);
  if (!device) return device.error();
  MadeMutantsRecord record;
  record.device_name = device->properties().name;
  record.sm =
      std::to_string(device->properties().major) + "." + std::to_string(device->properties().minor);
  record.toolchain = toolchain_versions();
  const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    progress.step(i, problems.size(), problems[i]->id);
    try {
      record.rows.push_back(
          row_of(*problems[i], audit_definition(*problems[i], *compiler, *device, threads)));
    } catch (const CudaError& failure) {
      record.rows.push_back(row_of(*problems[i], Error{failure.what()}));
    }
  }
  return record;
}

bool is_good(const MadeMutantsRecord& record) {
  std::int64_t caught = 0, counted = 0;
  bool each = true;
  for (const MadeMutantsRow& row : record.rows) {
    caught += row.caught();
    counted += row.counted();
    each &= row.failure.empty() && row.passed &&
            static_cast<double>(row.caught()) >=
                least_share_of_a_problem * static_cast<double>(row.counted());
  }
  return each && static_cast<double>(caught) >= least_share * static_cast<double>(counted);
}

Page problem_mutants_page() {
  Page page;
  page.description =
      "Makes wrong kernels of each definition and judges them: which mistakes do the bounds of a "
      "problem catch?";
  page.takes({"problem", "PROBLEM", "ids of problems", Count::any},
             list_value("PROBLEM", {Names::problem}));
  page.examples = {{"rekernel problem mutants softmax"}};
  page.group("Measuring")
      .add_options()("all", po::bool_switch(), "every problem")(
          "device", po::value<int>()->value_name("N")->default_value(0),
          "number of the GPU, as nvidia-smi counts");
  page.group("Output").add_options()("record", po::bool_switch(),
                                     "merge the rows into results/<gpu>/made_mutants.json")(
      "json", po::bool_switch(), "print the record as JSON");
  add_table_options(page.group("Output"));
  page.statuses[1] = "too few mistakes are caught";
  return page;
}

}  // namespace

int problem_mutants_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, problem_mutants_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (parsed.flag("record")) {
    if (const auto own = own_project(); !own) return bad_input(own.error());
  }
  const Result<std::vector<const Problem*>> problems = chosen_problems(parsed, "problem mutants");
  if (!problems) return bad_input(problems.error());
  const Result<MadeMutantsRecord> record = measure(*problems, parsed.get<int>("device"));
  if (!record) return bad_input(record.error());
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*record));
  } else {
    std::cout << table_format(parsed).shown(made_mutants_table(*record));
  }
  if (parsed.flag("record")) {
    const Result<std::filesystem::path> path = record_made_mutants(project_root(), *record);
    if (!path) return bad_input(path.error());
    std::cerr << "recorded in " << path->string() << "\n";
  }
  return is_good(*record) ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel

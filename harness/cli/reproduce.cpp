#include <algorithm>
#include <boost/json.hpp>
#include <iostream>

#include "harness/base/json.h"
#include "harness/cli/bench.h"
#include "harness/cli/command.h"
#include "harness/cli/compile_all.h"
#include "harness/cli/published_runs.h"
#include "harness/cli/references.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

int reproduce_on_gpu(const std::filesystem::path& root, const std::vector<Candidate>& candidates,
                     bool json) {
  BenchOptions options;
  options.pytorch = pytorch_is_installed();
  Result<Bench> bench = run_bench(candidates, options);
  if (!bench) return bad_input(bench.error());
  std::cout << (json ? pretty_json(to_json(*bench)) : bench_text(*bench, root));
  const bool all_passed = std::all_of(bench->rows.begin(), bench->rows.end(),
                                      [](const auto& row) { return row.status == Status::passed; });
  return all_passed ? exit_good : exit_verdict_failed;
}

int reproduce_from_record(const std::filesystem::path& root,
                          const std::vector<Candidate>& candidates, const std::string& why) {
  std::cout << "This machine cannot measure (" << why << ").\n"
            << "Compiling every committed kernel for every architecture that it runs on:\n\n";
  Result<Compiler> compiler = Compiler::load();
  if (!compiler) return bad_input(compiler.error());
  std::vector<CompileCheck> checks;
  {
    Progress progress;
    progress.show("compiling …");
    checks = compile_all(*compiler, candidates);
  }
  std::cout << compile_text(checks) << "\n";

  for (const std::filesystem::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_bench(path);
    if (!bench) return bad_input(bench.error());
    std::cout << "RECORDED, not measured here (" << std::filesystem::relative(path, root).string()
              << "):\n\n"
              << bench_text(*bench, root) << "\n";
  }
  Result<std::vector<ReplayedSearch>> runs = published_runs(root);
  if (!runs) return bad_input(runs.error());
  if (!runs->empty()) {
    std::cout << "RECORDED, published runs re-created (`rekernel replay NAME --measure` times them "
                 "on a GPU):\n\n"
              << published_runs_text(*runs);
  }
  return all_compile(checks) ? exit_good : exit_verdict_failed;
}

}  // namespace

int reproduce_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("json", po::bool_switch(), "with a GPU: print the record as JSON");
  const ParsedArguments parsed =
      parse_arguments(arguments, "rekernel reproduce [options]", "rekernel reproduce", options);
  if (parsed.exit_status) return *parsed.exit_status;

  const std::filesystem::path root = project_root();
  Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return bad_input(candidates.error());
  Result<int> devices = device_count();
  if (!devices) return reproduce_from_record(root, *candidates, devices.error().message);
  return reproduce_on_gpu(root, *candidates, parsed.flag("json"));
}

}  // namespace rekernel

#include <algorithm>
#include <iostream>
#include <map>

#include "harness/audit/errors.h"
#include "harness/audit/gallery.h"
#include "harness/audit/mutants_page.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/cli/bench.h"
#include "harness/cli/command.h"
#include "harness/cli/compile_all.h"
#include "harness/cli/readme.h"
#include "harness/records/noise.h"
#include "ops/catalog.h"
#include "replay/replayer.h"

namespace rekernel {

namespace {

using Complaints = std::vector<std::string>;

/// A committed kernel whose source or plan changed since it was measured has no result.
Result<Ok> check_results(const std::filesystem::path& root,
                         const std::vector<Candidate>& candidates, Complaints& complaints) {
  std::vector<BenchRow> rows;
  for (const std::filesystem::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_bench(path);
    if (!bench) return bench.error();
    rows.insert(rows.end(), bench->rows.begin(), bench->rows.end());
  }
  for (const Candidate& candidate : candidates) {
    const std::string sha256 = candidate_sha256(candidate);
    const std::string name = "generated/" + candidate.problem + "/" + candidate.name;
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const BenchRow& one) {
      return one.problem == candidate.problem && one.kernel == candidate.name &&
             one.sha256 == sha256;
    });
    if (row == rows.end()) {
      complaints.push_back(name + ": no result for its present content (sha256 " +
                           sha256.substr(0, 12) + "…); measure it with `rekernel bench " +
                           candidate.problem + " --record`");
    } else if (row->status != Status::passed) {
      complaints.push_back(name + ": its recorded verdict is " + to_string(row->status));
    }
  }
  for (const BenchRow& row : rows) {
    const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& one) {
      return one.problem == row.problem && one.name == row.kernel;
    });
    if (!known) {
      complaints.push_back("results: a row for generated/" + row.problem + "/" + row.kernel +
                           ", which does not exist");
    }
  }
  return Ok{};
}

void check_compilation(const std::vector<CompileCheck>& checks, Complaints& complaints) {
  for (const CompileCheck& check : checks) {
    if (!check.error.empty()) {
      complaints.push_back(check.candidate + " for " + check.target + ": " + check.error);
    }
  }
}

void check_every_problem_has_a_kernel(const std::vector<Candidate>& candidates,
                                      Complaints& complaints) {
  for (const Problem& problem : catalog()) {
    const bool has_one = std::any_of(candidates.begin(), candidates.end(),
                                     [&](const auto& one) { return one.problem == problem.id; });
    if (!has_one) complaints.push_back("generated/" + problem.id + ": no kernel");
  }
}

/// Every recorded search replays byte for byte, and a kernel that says it came from one is there.
void check_trajectories(const std::filesystem::path& root, const std::vector<Candidate>& candidates,
                        Complaints& complaints) {
  std::map<std::string, std::map<std::string, std::string>> sha256_by_trajectory;
  const std::vector<std::filesystem::path> paths = recorded_trajectories(root);
  Progress progress;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string name = "trajectories/" + paths[i].filename().string();
    progress.step(i, paths.size(), "replaying recorded searches");
    const Replay replay = replay_exactly(paths[i]);
    if (replay.interruption) complaints.push_back(name + ": " + replay.interruption->message);
    for (const ReplayedCandidate& one : replay.search.candidates) {
      sha256_by_trajectory[name][one.id] = one.sha256;
    }
  }
  for (const Candidate& candidate : candidates) {
    const Origin& origin = candidate.origin;
    if (origin.trajectory.empty()) continue;
    if (sha256_by_trajectory[origin.trajectory][origin.candidate] != candidate_sha256(candidate)) {
      complaints.push_back("generated/" + candidate.problem + "/" + candidate.name + ": " +
                           origin.trajectory + " records no candidate " + origin.candidate +
                           " with this source and plan");
    }
  }
}

Result<Ok> check_readme(const std::filesystem::path& root, Complaints& complaints) {
  Result<std::string> expected = generated_readme(root);
  if (!expected) return expected.error();
  Result<std::string> present = read_file(root / "README.md");
  if (!present) return present.error();
  if (*expected != *present) {
    complaints.push_back(
        "README.md: its tables are not those of results/ and trajectories/; run `rekernel report "
        "--readme`");
  }
  return Ok{};
}

/// A page whose generated part is made by `generate`.
Result<Ok> check_page(const std::filesystem::path& root, const char* page,
                      Result<std::string> (*generate)(const std::filesystem::path&),
                      const char* source, Complaints& complaints) {
  Result<std::string> expected = generate(root);
  if (!expected) return expected.error();
  Result<std::string> present = read_file(root / page);
  if (!present) return present.error();
  if (*expected != *present) {
    complaints.push_back(std::string(page) + ": its tables are not those of " + source +
                         "; run `rekernel report --readme`");
  }
  return Ok{};
}

Result<Ok> check_pages(const std::filesystem::path& root, Complaints& complaints) {
  Result<Ok> read =
      check_page(root, "tests/adversarial/README.md", gallery_page, "the fixtures", complaints);
  if (read) read = check_page(root, "harness/TIMING.md", timing_page, "results/", complaints);
  if (read) read = check_page(root, "ops/TOLERANCES.md", tolerances_page, "results/", complaints);
  if (read)
    read = check_page(root, "tests/mutants/README.md", mutants_page, "results/", complaints);
  if (!read) return read;
  Result<std::vector<std::string>> stale = stale_errors(root);
  if (!stale) return stale.error();
  complaints.insert(complaints.end(), stale->begin(), stale->end());
  return Ok{};
}

/// What the recorded samples say, by the interval as it is made today.
Result<Ok> check_noise(const std::filesystem::path& root, Complaints& complaints) {
  for (const std::filesystem::path& path : recorded_noises(root)) {
    Result<NoiseRecord> record = load_noise(path);
    if (!record) return record.error();
    for (const NoiseRow& row : record->rows) {
      if (summarise(row).holds()) continue;
      complaints.push_back(std::filesystem::relative(path, root).string() + ": " + row.problem +
                           "/" + row.subject + " against itself misses the criterion");
    }
  }
  return Ok{};
}

}  // namespace

int verify_command(const std::vector<std::string>& arguments) {
  const ParsedArguments parsed =
      parse_arguments(arguments, "rekernel verify", "rekernel verify", {});
  if (parsed.exit_status) return *parsed.exit_status;

  const std::filesystem::path root = project_root();
  Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return bad_input(candidates.error());
  Result<Compiler> compiler = Compiler::load();
  if (!compiler) return bad_input(compiler.error());

  Complaints complaints;
  const std::vector<CompileCheck> checks = compile_all(*compiler, *candidates);
  check_compilation(checks, complaints);
  check_every_problem_has_a_kernel(*candidates, complaints);
  check_trajectories(root, *candidates, complaints);
  if (Result<Ok> read = check_results(root, *candidates, complaints); !read) {
    return bad_input(read.error());
  }
  if (Result<Ok> read = check_readme(root, complaints); !read) return bad_input(read.error());
  if (Result<Ok> read = check_pages(root, complaints); !read) return bad_input(read.error());
  if (Result<Ok> read = check_noise(root, complaints); !read) return bad_input(read.error());

  for (const std::string& complaint : complaints) std::cout << complaint << "\n";
  std::cout << skipped_text(checks) << counted(candidates->size(), "kernel") << ", "
            << counted(complaints.size(), "complaint") << "\n";
  return complaints.empty() ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel

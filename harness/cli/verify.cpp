#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <map>
#include <sstream>

#include "harness/audit/errors.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/compile/compiler_message.h"
#include "harness/explain/launch_use.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/compile_all.h"
#include "harness/project/recorded.h"
#include "harness/project/root.h"
#include "harness/project/slow_results.h"
#include "harness/project/unfinished_searches.h"
#include "harness/pull_request/comment.h"
#include "harness/pull_request/pull_request.h"
#include "harness/records/contradictions.h"
#include "harness/records/noise.h"
#include "harness/records/signature.h"
#include "harness/report/generated_parts.h"
#include "harness/report/pictures.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "replay/playback/recorded_bench.h"
#include "replay/playback/replayer.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

using Complaints = std::vector<std::string>;

/// Complaints name files and quote texts of strangers.
constexpr std::size_t longest_line = 4096;

/// A record that cannot be read, or contradicts itself, is one complaint a line.
void complain_by_line(const std::string& message, Complaints& complaints) {
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) complaints.push_back(line);
}

/// Candidates of recorded searches: file → id → candidate.
using RecordedCandidates = std::map<std::string, std::map<std::string, ReplayedCandidate>>;

/// A kernel that a search found is measured by the search and by the bench.
void check_origins(const std::vector<std::pair<std::filesystem::path, Bench>>& benches,
                   const std::vector<Candidate>& candidates, const RecordedCandidates& recorded,
                   Complaints& complaints) {
  for (const Candidate& candidate : candidates) {
    const auto file = recorded.find(candidate.origin.trajectory);
    if (file == recorded.end()) continue;
    const auto origin = file->second.find(candidate.origin.candidate);
    if (origin == file->second.end()) continue;
    for (const auto& [path, bench] : benches) {
      for (const BenchRow& row : bench.rows) {
        if (row.problem != candidate.problem || row.kernel != candidate.name) continue;
        for (const std::string& line : unlike_origin(row, bench.device_name, origin->second)) {
          complaints.push_back(path.string() + ": " + row.problem + "/" + row.kernel + ": " + line +
                               " in " + file->first);
        }
      }
    }
  }
}

/// A committed kernel whose source or plan changed since it was measured has no result.
Result<Ok> check_results(const std::filesystem::path& root,
                         const std::vector<Candidate>& candidates,
                         const RecordedCandidates& recorded, Complaints& complaints) {
  std::vector<BenchRow> rows;
  std::vector<std::pair<std::filesystem::path, Bench>> benches;
  for (const std::filesystem::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_record(root, path);
    if (!bench) {
      complain_by_line(bench.error().message, complaints);
      continue;
    }
    rows.insert(rows.end(), bench->rows.begin(), bench->rows.end());
    benches.emplace_back(std::filesystem::relative(path, root), std::move(*bench));
  }
  for (std::string& line : contradictions_between(benches)) complaints.push_back(std::move(line));
  check_origins(benches, candidates, recorded, complaints);
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
                           candidate.problem + "/" + candidate.name + " --record`");
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

void check_compilation(const std::vector<Candidate>& candidates,
                       const std::vector<CompileCheck>& checks, Complaints& complaints) {
  for (const CompilerWords& failure : compile_failures(checks)) {
    complaints.push_back(failure.where() + ": " + headline(failure.text));
  }
  for (std::string& line : refused_launches(candidates, checks)) {
    complaints.push_back(std::move(line));
  }
}

void check_published_problems_have_kernels(const std::vector<Candidate>& candidates,
                                           Complaints& complaints) {
  for (const Problem& problem : published_problems()) {
    const bool has_one = std::any_of(candidates.begin(), candidates.end(),
                                     [&](const auto& one) { return one.problem == problem.id; });
    if (!has_one) complaints.push_back("generated/" + problem.id + ": no kernel");
  }
}

/// Every recorded search replays byte for byte, and a kernel that says it came from one is there.
RecordedCandidates check_trajectories(const std::filesystem::path& root,
                                      const std::vector<Candidate>& candidates,
                                      Complaints& complaints) {
  RecordedCandidates recorded;
  std::vector<std::string> left_out;
  const std::vector<std::filesystem::path> paths = finished_trajectories(root, left_out);
  for (const std::string& line : left_out) std::cout << line << "\n";
  Progress progress;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string name = "trajectories/" + paths[i].filename().string();
    progress.step(i, paths.size(), "replaying recorded searches");
    const Replay replay = replay_exactly(paths[i]);
    if (replay.interruption) complain_by_line(replay.interruption->message, complaints);
    for (const std::string& line : unlike_known_device(replay.search.header.device)) {
      complaints.push_back(name + ": header: " + line);
    }
    const Result<Signer> signer = signer_of_file(paths[i], allowed_signers_path(root));
    if (!signer || signer->kind == Signer::Kind::invalid) {
      complaints.push_back(
          name + ".sig: " + (signer ? "not a signature of this file" : signer.error().message));
    }
    for (const ReplayedCandidate& one : replay.search.candidates) recorded[name][one.id] = one;
  }
  for (const Candidate& candidate : candidates) {
    const Origin& origin = candidate.origin;
    if (origin.trajectory.empty()) continue;
    if (recorded[origin.trajectory][origin.candidate].sha256 != candidate_sha256(candidate)) {
      complaints.push_back("generated/" + candidate.problem + "/" + candidate.name + ": " +
                           origin.trajectory + " records no candidate " + origin.candidate +
                           " with this source and plan");
    }
  }
  return recorded;
}

Result<Ok> check_generated_parts(const std::filesystem::path& root, Complaints& complaints) {
  const auto add = [&](const std::vector<GeneratedComplaint>& found) {
    for (const GeneratedComplaint& one : found) complaints.push_back(one.file + ": " + one.message);
  };
  const Result<std::vector<GeneratedComplaint>> pages = stale_pages(root);
  if (!pages) return pages.error();
  add(*pages);
  if (const Result<std::vector<GeneratedComplaint>> pictures = stale_pictures(root)) {
    add(*pictures);
  } else {
    std::cout << "results/pictures: not compared: " << pictures.error().message << "\n";
  }
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

Result<PullRequestOptions> pull_request_options(const ParsedArguments& parsed) {
  PullRequestOptions options;
  options.base = parsed.get<std::string>("base");
  if (options.base.empty() || options.base.starts_with("-"))
    return Error{"BASE: expected a commit"};
  const std::string& gpu = parsed.get<std::string>("gpu");
  if (gpu == "on") options.gpu = PullRequestOptions::Gpu::on;
  if (gpu == "off") options.gpu = PullRequestOptions::Gpu::off;
  options.device = parsed.get<int>("device");
  return options;
}

/// Writes the comment that the options ask for, and tells what is wrong; the exit status.
int show_findings(const PullRequestFindings& found, const ParsedArguments& parsed) {
  if (parsed.has("comment")) {
    const Result<Ok> written =
        write_file_atomically(parsed.get<std::string>("comment"), to_markdown(found));
    if (!written) return bad_input(written.error());
  }
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(found));
  } else {
    for (const PullRequestComplaint& one : found.complaints) {
      std::cout << one.file << ": " << one_line(one.message, longest_line) << "\n";
    }
    for (const std::string& one : found.left) std::cout << "left: " << one << "\n";
    std::cout << counted(found.complaints.size(), "complaint") << "\n";
  }
  return found.passed() ? exit_good : exit_verdict_failed;
}

int verify_project(const std::filesystem::path& root) {
  Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return bad_input(candidates.error());
  Result<Compiler> compiler = Compiler::load();
  if (!compiler) return bad_input(compiler.error());

  Complaints complaints;
  const std::vector<CompileCheck> checks = compile_all(*compiler, *candidates);
  check_compilation(*candidates, checks, complaints);
  for (const CompilerWords& failure : compile_failures(check_other_sizes(*compiler, *candidates))) {
    complaints.push_back(failure.where() + ": " + headline(failure.text));
  }
  check_published_problems_have_kernels(*candidates, complaints);
  const RecordedCandidates recorded = check_trajectories(root, *candidates, complaints);
  for (std::string& line : stale_slow_results(root)) complaints.push_back(std::move(line));
  if (Result<Ok> read = check_results(root, *candidates, recorded, complaints); !read) {
    return bad_input(read.error());
  }
  if (Result<Ok> read = check_generated_parts(root, complaints); !read) {
    return bad_input(read.error());
  }
  if (Result<Ok> read = check_noise(root, complaints); !read) return bad_input(read.error());

  for (const std::string& complaint : complaints) {
    std::cout << one_line(complaint, longest_line) << "\n";
  }
  std::cout << skipped_text(checks) << counted(candidates->size(), "kernel") << ", "
            << counted(complaints.size(), "complaint") << "\n";
  return complaints.empty() ? exit_good : exit_verdict_failed;
}

Page verify_page() {
  Page page;
  page.description =
      "Checks that kernels, records and pages belong together. With BASE, judges what is committed "
      "as a pull request onto that commit, with the rules of that commit.";
  page.takes(
      {"base", "BASE",
       "judge the checkout as a pull request onto this commit; without it, the whole project",
       Count::optional},
      text_value("COMMIT"));
  page.examples = {{"rekernel verify origin/main --comment comment.md"}};
  page.group("Judging, with BASE")
      .add_options()("gpu", one_of({"auto", "on", "off"})->default_value("auto"),
                     "judge and time the candidate; auto: where there is a GPU");
  add_device_option(page.group("Judging, with BASE"));
  page.group("Output, with BASE")
      .add_options()("comment", text_value("FILE", {Names::file}),
                     "write a comment in Markdown here")("json", po::bool_switch(), "print JSON");
  page.statuses[1] = "there are complaints, or the candidate did not pass";
  return page;
}

}  // namespace

int verify_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, verify_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (parsed.has("base")) {
    prefer_problems_of_program();
    const Result<PullRequestOptions> asked = pull_request_options(parsed);
    if (!asked) return bad_input(asked.error());
    const Result<PullRequestFindings> found = examine_pull_request(project_root(), *asked);
    return found ? show_findings(*found, parsed) : bad_input(found.error());
  }
  if (parsed.has("comment") || parsed.flag("json")) {
    return bad_input({"--comment and --json: expected BASE with them"});
  }
  return verify_project(project_root());
}

}  // namespace rekernel

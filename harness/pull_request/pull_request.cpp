#include "harness/pull_request/pull_request.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <iostream>
#include <map>
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/harness_digest.h"
#include "harness/base/json.h"
#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/compile/compile.h"
#include "harness/compile/compiler_message.h"
#include "harness/measuring/bench.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/project/recorded.h"
#include "harness/project/scratch_folder.h"
#include "harness/pull_request/rules.h"
#include "harness/records/contradictions.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"
#include "harness/report/generated_parts.h"
#include "harness/report/leaderboard.h"
#include "harness/report/pictures.h"
#include "harness/terminal/exit_status.h"
#include "replay/playback/recorded_bench.h"
#include "replay/playback/replayer.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

using Complaints = std::vector<PullRequestComplaint>;

/// Where code or a record is expected, and what a reader would see is something else.
void examine_content(const fs::path& root, const ChangedFile& file, Complaints& complaints) {
  constexpr std::uintmax_t max_bytes = 4u << 20;
  if (file.kind == 'D') return;
  std::error_code status;
  const fs::path path = root / file.path;
  if (!fs::is_regular_file(fs::symlink_status(path, status))) return;  // spoken of elsewhere
  const std::uintmax_t bytes = fs::file_size(path, status);
  const bool source = file.path.starts_with("generated/");
  if (bytes > (source ? max_source_bytes : max_bytes)) {
    complaints.push_back({file.path, std::to_string(bytes) + " bytes: expected " +
                                         std::to_string(source ? max_source_bytes : max_bytes) +
                                         " at most; generate tables at run time"});
    return;
  }
  const Result<std::string> content = read_file(path);
  if (content && (content->find('\0') != std::string::npos || !is_utf8(*content))) {
    complaints.push_back({file.path, "binary: expected text in UTF-8"});
  }
}

/// The part of a page that people write.
std::string written_part(const std::string& page) {
  std::string rest = page;
  for (const char* section : {"results", "published-runs"}) {
    static_cast<void>(replace_section(rest, section, "", "README.md"));
  }
  return rest;
}

/// A record's rows by kernel, as JSON.
std::map<std::string, std::string> rows_by_kernel(const std::string& text) {
  std::map<std::string, std::string> rows;
  const Result<boost::json::value> json = parse_json(text, "a record");
  const boost::json::object* record = json && json->is_object() ? &json->get_object() : nullptr;
  const boost::json::value* array = record ? record->if_contains("rows") : nullptr;
  if (!array || !array->is_array()) return rows;
  for (const boost::json::value& row : array->get_array()) {
    JsonReader reader("a record", row);
    const std::string name =
        reader.required("problem").string() + "/" + reader.required("kernel").string();
    if (!reader.error()) rows[name] = pretty_json(row);
  }
  return rows;
}

/// Finds out about a pull request what can be found.
class Examination {
 public:
  /// `head`: a folder for a copy of HEAD, empty.
  Examination(const fs::path& work_tree, const fs::path& head, const PullRequestOptions& options)
      : work_tree_(work_tree), root_(head), options_(options), git_(work_tree) {}

  Result<Ok> examine() {
    Result<std::string> base = git_.merge_base(options_.base);
    if (!base) return base.error();
    found_.base = std::move(*base);
    const Result<std::string> head = git_.run({"rev-parse", "HEAD"});
    if (!head) return head.error();
    found_.commit = head->substr(0, head->find('\n'));
    Result<std::vector<ChangedFile>> changes = git_.changes_since(found_.base);
    if (!changes) return changes.error();
    if (Result<Ok> copied = git_.copy_of_head(root_); !copied) return copied;
    if (Result<Ok> told = tell_uncommitted(); !told) return told;
    files_ = sort_out(*changes, candidates_in_base());
    for (const ChangedFile& file : *changes) examine_content(root_, file, files_.complaints);
    for (const std::string& path : files_.pages) examine_written_page(path);
    examine_readme();
    examine_program();
    if (files_.candidates.size() == 1) examine_candidate();
    for (const std::string& path : files_.benches) examine_bench(path);
    for (const std::string& path : files_.trajectories) examine_trajectory(path);
    if (found_.candidate) examine_origin();
    examine_generated_parts(*changes);
    if (found_.candidate && files_.benches.empty()) examine_missing_result();
    return measure();
  }

  PullRequestFindings found() {
    found_.complaints = std::move(files_.complaints);
    return std::move(found_);
  }

 private:
  void complain(const std::string& file, const std::string& message) {
    files_.complaints.push_back({file, message});
  }

  std::set<std::string> candidates_in_base() const {
    std::set<std::string> folders;
    const Result<std::string> listed =
        git_.run({"ls-tree", "-r", "--name-only", found_.base, "--", "generated/"});
    std::istringstream lines(listed ? *listed : "");
    for (std::string line; std::getline(lines, line);) {
      if (std::count(line.begin(), line.end(), '/') == 3)
        folders.insert(line.substr(0, line.rfind('/')));
    }
    return folders;
  }

  /// What is judged is what would be merged.
  Result<Ok> tell_uncommitted() {
    constexpr std::size_t max_named = 20;
    constexpr std::size_t longest_name = 300;
    const Result<std::vector<std::string>> paths = git_.uncommitted();
    if (!paths) return paths.error();
    for (std::size_t i = 0; i < std::min(max_named, paths->size()); ++i) {
      found_.left.push_back("commit " + one_line((*paths)[i], longest_name) +
                            ": HEAD is judged, where it is missing or different");
    }
    if (paths->size() > max_named) {
      found_.left.push_back("commit " + counted(paths->size() - max_named, "other file"));
    }
    return Ok{};
  }

  /// A page that people write.
  void examine_written_page(const std::string& path) {
    const Result<std::string> now = read_file(root_ / path);
    if (!now) return;
    for (const std::string& line :
         page_complaints(git_.content(found_.base, path).value_or(""), *now)) {
      complain(path, line);
    }
  }

  /// Made again from the records: of what the candidate's pull request may bring, README.md and the
  /// pictures. The rest was refused already.
  void examine_generated_parts(const std::vector<ChangedFile>& changes) {
    const auto add = [&](const std::vector<GeneratedComplaint>& found) {
      for (const GeneratedComplaint& one : found) complain(one.file, one.message);
    };
    const Result<std::vector<GeneratedComplaint>> readme = stale_readme(root_);
    if (!readme) {
      // Else a record is bad, which was spoken of.
      if (files_.complaints.empty()) {
        complain("README.md", "its generated part cannot be made: " + readme.error().message);
      }
      return;
    }
    add(*readme);
    const auto shows = [](const ChangedFile& file) {
      return file.path.starts_with("results/") || file.path.starts_with("trajectories/") ||
             file.path == "README.md";
    };
    if (std::none_of(changes.begin(), changes.end(), shows)) return;
    const Result<std::vector<GeneratedComplaint>> pictures = stale_pictures(root_);
    if (pictures) return add(*pictures);
    for (const ChangedFile& file : changes) {
      if (!file.path.starts_with("results/pictures/")) continue;
      complain(file.path, "cannot be compared with the records: " + pictures.error().message);
    }
    found_.left.push_back("compare results/pictures: " + pictures.error().message);
  }

  void examine_readme() {
    const std::optional<std::string> before = git_.content(found_.base, "README.md");
    const Result<std::string> now = read_file(root_ / "README.md");
    if (before && now && written_part(*before) != written_part(*now)) {
      complain("README.md",
               "changed outside of its generated tables: that needs a pull request of its own");
    }
  }

  /// The program judges by its own sources: they must be the checkout's.
  void examine_program() {
    const Result<HarnessDigests> digests = harness_digests_of(root_);
    if (!digests || *digests == harness_digests()) return;
    found_.left.push_back("this program was built from other sources than the checkout's (" +
                          joined(differing_sources(harness_digests(), *digests)) +
                          "): build it again and verify again");
  }

  void examine_candidate() {
    found_.folder = *files_.candidates.begin();
    Result<Candidate> candidate = load_candidate(root_ / found_.folder);
    if (!candidate) return complain(found_.folder, candidate.error().message);
    found_.candidate = std::move(*candidate);
    if (auto why = placeholder_idea(*found_.candidate))
      complain(found_.folder + "/kernel.json", *why);
    const Result<Compiler> compiler = Compiler::load();
    if (!compiler) {
      found_.left.push_back("compile it: " + compiler.error().message);
      return;
    }
    const std::vector<CompileCheck> checks = compile_all(*compiler, {*found_.candidate});
    for (const CompileCheck& check : checks) {
      if (!check.skipped.empty())
        found_.left.push_back("compile it for " + check.target + ": " + check.skipped);
    }
    for (const CompilerWords& failure : compile_failures(checks)) {
      complain(found_.folder + "/kernel.cu",
               "for " + joined(failure.targets) + ": " + headline(failure.text));
    }
    for (const CompilerWords& failure :
         compile_failures(check_other_sizes(*compiler, {*found_.candidate}))) {
      complain(found_.folder + "/kernel.json", failure.where() + ": " + headline(failure.text));
    }
    found_.uses = resource_uses(*found_.candidate, checks);
    for (PullRequestComplaint& one : over_limits(found_.folder + "/kernel.json", found_.uses)) {
      files_.complaints.push_back(std::move(one));
    }
  }

  std::string kernel_name() const {
    return found_.candidate->problem + "/" + found_.candidate->name;
  }

  /// Other people's rows stay as they are, and the candidate's is of what it is now.
  void examine_bench(const std::string& path) {
    const Result<std::string> text = read_file(root_ / path);
    if (!text) return;
    const std::map<std::string, std::string> before =
        rows_by_kernel(git_.content(found_.base, path).value_or(""));
    const std::map<std::string, std::string> now = rows_by_kernel(*text);
    for (const auto& [name, row] : before) {
      if (!now.contains(name)) complain(path, "the row of " + name + " is missing: put it back");
    }
    for (const auto& [name, row] : now) {
      const auto old = before.find(name);
      const bool changed = old == before.end() || old->second != row;
      if (changed && !(found_.candidate && name == kernel_name())) {
        complain(path, "the row of " + name +
                           " changed: a pull request brings only its own candidate's row");
      }
    }
    examine_device(path);
    if (const Result<Bench> good = load_record(root_, root_ / path); !good) {
      std::istringstream lines(good.error().message);
      for (std::string line; std::getline(lines, line);) complain(path, without_root(line, path));
    }
    const Result<Bench> bench = read_bench(root_ / path);
    if (found_.candidate && bench) examine_row(path, *bench);
  }

  /// A record's bounds follow from its device: a pull request brings times, not another GPU.
  void examine_device(const std::string& path) {
    const std::optional<std::string> text = git_.content(found_.base, path);
    if (!text) return;
    const Result<boost::json::value> json = parse_json(*text, "the base's record");
    const Result<Bench> before =
        json ? bench_from_json(*json, "the base's record") : Result<Bench>(json.error());
    const Result<Bench> now = read_bench(root_ / path);
    if (!before || !now) return;
    for (const std::string& line : unlike_device_before(*before, *now)) complain(path, line);
  }

  std::string without_root(const std::string& line, const std::string& path) const {
    const std::string begin = (root_ / path).string() + ": ";
    return line.starts_with(begin) ? line.substr(begin.size()) : line;
  }

  void examine_row(const std::string& path, const Bench& bench) {
    for (const BenchRow& row : bench.rows) {
      if (row.problem + "/" + row.kernel != kernel_name()) continue;
      if (row.sha256 != candidate_sha256(*found_.candidate)) {
        complain(path, "the row of " + kernel_name() +
                           " is of another source or plan: measure it "
                           "with `rekernel bench " +
                           kernel_name() + " --record`");
      }
      if (row.harness != present_judge(row)) {
        complain(path, "the row of " + kernel_name() + " was measured by another judge (" +
                           row.harness + ", here " + present_judge(row) +
                           "): rebase, build, and measure again");
      }
      if (row.status != Status::passed) {
        complain(path, "the recorded verdict on " + kernel_name() + " is " + to_string(row.status));
      }
    }
  }

  void examine_trajectory(const std::string& path) {
    const std::optional<std::string> before = git_.content(found_.base, path);
    const Result<std::string> now = read_file(root_ / path);
    if (before && now && !now->starts_with(*before)) {
      complain(path, "recorded events changed: a recording is only ever continued");
    }
    const Replay replay = replay_exactly(root_ / path);
    if (!replay.interruption) {
      for (const std::string& line : unlike_known_device(replay.search.header.device)) {
        complain(path, "header: " + line);
      }
      for (const ReplayedCandidate& one : replay.search.candidates) recorded_[path][one.id] = one;
      const Result<Signer> signer = signer_of_file(root_ / path, allowed_signers_path(root_));
      if (signer && signer->kind == Signer::Kind::invalid) {
        complain(path + ".sig", "not a signature of this file");
      }
      return;
    }
    std::istringstream lines(replay.interruption->message);
    for (std::string line; std::getline(lines, line);) complain(path, without_root(line, path));
  }

  void examine_origin() {
    const Origin& origin = found_.candidate->origin;
    if (origin.trajectory.empty()) {
      if (!files_.trajectories.empty()) {
        complain(*files_.trajectories.begin(),
                 "not an origin of the candidate: name it in kernel.json, or remove it");
      }
      return;
    }
    for (const std::string& path : files_.trajectories) {
      if (path != origin.trajectory) complain(path, "not the search of the candidate's origin");
    }
    if (!recorded_.contains(origin.trajectory) &&
        !files_.trajectories.contains(origin.trajectory)) {
      const Replay replay = replay_exactly(root_ / origin.trajectory);
      for (const ReplayedCandidate& one : replay.search.candidates) {
        recorded_[origin.trajectory][one.id] = one;
      }
    }
    const ReplayedCandidate& found = recorded_[origin.trajectory][origin.candidate];
    if (found.sha256 != candidate_sha256(*found_.candidate)) {
      complain(found_.folder + "/kernel.json", "origin: " + origin.trajectory +
                                                   " records no candidate " + origin.candidate +
                                                   " with this source and plan");
    }
    for (const std::string& path : files_.benches) {
      const Result<Bench> bench = read_bench(root_ / path);
      if (!bench) continue;
      for (const BenchRow& row : bench->rows) {
        if (row.problem + "/" + row.kernel != kernel_name()) continue;
        for (const std::string& line : unlike_origin(row, bench->device_name, found)) {
          complain(path, kernel_name() + ": " + line + " in " + origin.trajectory);
        }
      }
    }
  }

  void examine_missing_result() {
    found_.left.push_back("measure it on a GPU: `rekernel bench " + kernel_name() +
                          " --record`, and commit results/<gpu>/bench.json");
  }

  /// The verdict of this machine's GPU, if it has one.
  Result<Ok> measure() {
    if (options_.gpu == PullRequestOptions::Gpu::off || !found_.candidate) return Ok{};
    if (const Result<int> devices = device_count(); !devices) {
      if (options_.gpu == PullRequestOptions::Gpu::on) return devices.error();
      return Ok{};
    }
    BenchOptions bench_options;
    bench_options.devices = {options_.device};
    const Result<Bench> bench = run_bench({*found_.candidate}, bench_options);
    if (!bench) return bench.error();
    found_.measured = bench->rows.front();
    found_.measured_on = bench->device_name;
    const fs::path path = bench_path("", bench->device_name);
    found_.base_record = git_.content(found_.base, path.string());
    if (found_.measured->status != Status::passed || !files_.complaints.empty()) return Ok{};
    const Result<fs::path> recorded = record_bench(work_tree_, *bench);
    if (!recorded) return recorded.error();
    found_.left.clear();
    found_.left.push_back("commit " + fs::relative(*recorded, work_tree_).string() +
                          ", and what `rekernel report --readme` makes from it");
    return Ok{};
  }

  const fs::path& work_tree_;
  const fs::path& root_;  ///< the copy of HEAD, which is judged
  const PullRequestOptions& options_;
  Git git_;
  PullRequestFiles files_;
  PullRequestFindings found_;
  std::map<std::string, std::map<std::string, ReplayedCandidate>> recorded_;  ///< file → id
};

}  // namespace

bool PullRequestFindings::passed() const {
  return complaints.empty() && (!measured || measured->status == Status::passed);
}

Result<PullRequestFindings> examine_pull_request(const fs::path& root,
                                                 const PullRequestOptions& options) {
  const Result<ScratchFolder> head = ScratchFolder::make("head");
  if (!head) return head.error();
  Examination examination(root, head->path(), options);
  if (const Result<Ok> examined = examination.examine(); !examined) return examined.error();
  return examination.found();
}

}  // namespace rekernel

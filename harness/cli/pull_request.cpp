#include "harness/cli/pull_request.h"

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
#include "harness/cli/bench.h"
#include "harness/cli/command.h"
#include "harness/cli/generated_parts.h"
#include "harness/cli/leaderboard.h"
#include "harness/cli/pictures.h"
#include "harness/cli/pull_request_rules.h"
#include "harness/cli/recorded.h"
#include "harness/cli/references.h"
#include "harness/cli/scratch_folder.h"
#include "harness/compile/compile.h"
#include "harness/compile/compiler_message.h"
#include "harness/records/contradictions.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"
#include "harness/problems/catalog.h"
#include "replay/playback/recorded_bench.h"
#include "replay/playback/replayer.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

using Complaints = std::vector<PullRequestComplaint>;

/// Where code or a record is expected, and what a reader would see is something else.
void examine_content(const fs::path& root, const ChangedFile& file, Complaints& complaints) {
  constexpr std::uintmax_t most_bytes = 4u << 20;
  if (file.kind == 'D') return;
  std::error_code status;
  const fs::path path = root / file.path;
  if (!fs::is_regular_file(fs::symlink_status(path, status))) return;  // spoken of elsewhere
  const std::uintmax_t bytes = fs::file_size(path, status);
  const bool source = file.path.starts_with("generated/");
  if (bytes > (source ? max_source_bytes : most_bytes)) {
    complaints.push_back({file.path, std::to_string(bytes) + " bytes: expected " +
                                         std::to_string(source ? max_source_bytes : most_bytes) +
                                         " at most; generate at run time what is a table"});
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

/// Everything that is found out about a pull request.
class PullRequest {
 public:
  /// `head`: a folder for a copy of HEAD, empty.
  PullRequest(const fs::path& work_tree, const fs::path& head, const PullRequestOptions& options)
      : work_tree_(work_tree), root_(head), options_(options), git_(work_tree) {}

  Result<Ok> examine() {
    Result<std::string> base = git_.merge_base(options_.base);
    if (!base) return base.error();
    base_ = std::move(*base);
    const Result<std::string> head = git_.run({"rev-parse", "HEAD"});
    if (!head) return head.error();
    head_commit_ = head->substr(0, head->find('\n'));
    Result<std::vector<ChangedFile>> changes = git_.changes_since(base_);
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
    if (candidate_) examine_origin();
    examine_generated_parts(*changes);
    if (candidate_ && files_.benches.empty()) examine_missing_result();
    return measure();
  }

  const Complaints& complaints() const { return files_.complaints; }
  bool passed() const {
    return files_.complaints.empty() && (!measured_ || measured_->status == Status::passed);
  }
  std::string markdown() const;
  boost::json::object json() const;
  std::vector<std::string> left() const { return left_; }

 private:
  void complain(const std::string& file, const std::string& message) {
    files_.complaints.push_back({file, message});
  }

  std::set<std::string> candidates_in_base() const {
    std::set<std::string> folders;
    const Result<std::string> listed =
        git_.run({"ls-tree", "-r", "--name-only", base_, "--", "generated/"});
    std::istringstream lines(listed ? *listed : "");
    for (std::string line; std::getline(lines, line);) {
      if (std::count(line.begin(), line.end(), '/') == 3)
        folders.insert(line.substr(0, line.rfind('/')));
    }
    return folders;
  }

  /// What is judged is what would be merged.
  Result<Ok> tell_uncommitted() {
    constexpr std::size_t most_named = 20;
    constexpr std::size_t longest_name = 300;
    const Result<std::vector<std::string>> paths = git_.uncommitted();
    if (!paths) return paths.error();
    for (std::size_t i = 0; i < std::min(most_named, paths->size()); ++i) {
      left_.push_back("commit " + one_line((*paths)[i], longest_name) +
                      ": HEAD is judged, which has it not, or otherwise");
    }
    if (paths->size() > most_named) {
      left_.push_back("commit " + counted(paths->size() - most_named, "other file"));
    }
    return Ok{};
  }

  /// A page that people write.
  void examine_written_page(const std::string& path) {
    const Result<std::string> now = read_file(root_ / path);
    if (!now) return;
    for (const std::string& line : page_complaints(git_.content(base_, path).value_or(""), *now)) {
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
      complain(file.path,
               "cannot be compared with what the records give: " + pictures.error().message);
    }
    left_.push_back("compare results/pictures: " + pictures.error().message);
  }

  void examine_readme() {
    const std::optional<std::string> before = git_.content(base_, "README.md");
    const Result<std::string> now = read_file(root_ / "README.md");
    if (before && now && written_part(*before) != written_part(*now)) {
      complain("README.md",
               "changed outside of its generated tables: bring that as a pull request "
               "of its own");
    }
  }

  /// The program judges by its own sources: they must be the checkout's.
  void examine_program() {
    const Result<HarnessDigests> digests = harness_digests_of(root_);
    if (!digests || *digests == harness_digests()) return;
    left_.push_back("this program was built from other sources than the checkout's (" +
                    joined(differing_sources(harness_digests(), *digests)) +
                    "): build it anew and verify again");
  }

  void examine_candidate() {
    folder_ = *files_.candidates.begin();
    Result<Candidate> candidate = load_candidate(root_ / folder_);
    if (!candidate) return complain(folder_, candidate.error().message);
    candidate_ = std::move(*candidate);
    if (auto why = placeholder_idea(*candidate_)) complain(folder_ + "/kernel.json", *why);
    const Result<Compiler> compiler = Compiler::load();
    if (!compiler) {
      left_.push_back("compile it: " + compiler.error().message);
      return;
    }
    const std::vector<CompileCheck> checks = compile_all(*compiler, {*candidate_});
    for (const CompileCheck& check : checks) {
      if (!check.skipped.empty())
        left_.push_back("compile it for " + check.target + ": " + check.skipped);
    }
    for (const CompilerWords& failure : compile_failures(checks)) {
      complain(folder_ + "/kernel.cu",
               "for " + joined(failure.targets) + ": " + headline(failure.text));
    }
    uses_ = resource_uses(*candidate_, checks);
    for (PullRequestComplaint& one : over_limits(folder_ + "/kernel.json", uses_)) {
      files_.complaints.push_back(std::move(one));
    }
  }

  std::string kernel_name() const { return candidate_->problem + "/" + candidate_->name; }

  /// Other people's rows stay as they are, and the candidate's is of what it is now.
  void examine_bench(const std::string& path) {
    const Result<std::string> text = read_file(root_ / path);
    if (!text) return;
    const std::map<std::string, std::string> before =
        rows_by_kernel(git_.content(base_, path).value_or(""));
    const std::map<std::string, std::string> now = rows_by_kernel(*text);
    for (const auto& [name, row] : before) {
      if (!now.contains(name)) complain(path, "the row of " + name + " is gone: put it back");
    }
    for (const auto& [name, row] : now) {
      const auto old = before.find(name);
      const bool changed = old == before.end() || old->second != row;
      if (changed && !(candidate_ && name == kernel_name())) {
        complain(path, "the row of " + name +
                           " changed: a pull request brings its own candidate's "
                           "row alone");
      }
    }
    examine_device(path);
    if (const Result<Bench> good = load_record(root_, root_ / path); !good) {
      std::istringstream lines(good.error().message);
      for (std::string line; std::getline(lines, line);) complain(path, without_root(line, path));
    }
    const Result<Bench> bench = read_bench(root_ / path);
    if (candidate_ && bench) examine_row(path, *bench);
  }

  /// A record's bounds follow from its device: a pull request brings times, not another GPU.
  void examine_device(const std::string& path) {
    const std::optional<std::string> text = git_.content(base_, path);
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
      if (row.sha256 != candidate_sha256(*candidate_)) {
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
    const std::optional<std::string> before = git_.content(base_, path);
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
    const Origin& origin = candidate_->origin;
    if (origin.trajectory.empty()) {
      if (!files_.trajectories.empty()) {
        complain(*files_.trajectories.begin(),
                 "no origin of the candidate: name it in kernel.json, or take it out");
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
    if (found.sha256 != candidate_sha256(*candidate_)) {
      complain(folder_ + "/kernel.json", "origin: " + origin.trajectory + " records no candidate " +
                                             origin.candidate + " with this source and plan");
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
    left_.push_back("measure it on a GPU: `rekernel bench " + kernel_name() +
                    " --record`, and commit results/<gpu>/bench.json");
  }

  /// The verdict of this machine's GPU, if it has one.
  Result<Ok> measure() {
    if (options_.gpu == PullRequestOptions::Gpu::off || !candidate_) return Ok{};
    if (const Result<int> devices = device_count(); !devices) {
      if (options_.gpu == PullRequestOptions::Gpu::on) return devices.error();
      return Ok{};
    }
    BenchOptions bench_options;
    bench_options.devices = {options_.device};
    const Result<Bench> bench = run_bench({*candidate_}, bench_options);
    if (!bench) return bench.error();
    measured_ = bench->rows.front();
    measured_on_ = bench->device_name;
    const fs::path path = bench_path("", bench->device_name);
    before_ = git_.content(base_, path.string());
    if (measured_->status != Status::passed || !files_.complaints.empty()) return Ok{};
    const Result<fs::path> recorded = record_bench(work_tree_, *bench);
    if (!recorded) return recorded.error();
    left_.clear();
    left_.push_back("commit " + fs::relative(*recorded, work_tree_).string() +
                    ", and what `rekernel report --readme` makes of it");
    return Ok{};
  }

  std::string ranks_text() const;
  std::string verdict_text() const;

  const fs::path& work_tree_;
  const fs::path& root_;  ///< the copy of HEAD, which is judged
  const PullRequestOptions& options_;
  Git git_;
  std::string base_;
  std::string head_commit_;
  std::string folder_;
  PullRequestFiles files_;
  std::optional<Candidate> candidate_;
  std::vector<ResourceUse> uses_;
  std::map<std::string, std::map<std::string, ReplayedCandidate>> recorded_;  ///< file → id
  std::optional<BenchRow> measured_;
  std::string measured_on_;
  std::optional<std::string> before_;
  std::vector<std::string> left_;
};

Table resource_table(const std::vector<ResourceUse>& uses) {
  Table table;
  table.columns = {{.heading = "target"},
                   {.heading = "kernel", .markdown = true},
                   {.heading = "registers", .right_aligned = true},
                   {.heading = "of a block, of 65536", .right_aligned = true},
                   {.heading = "shared memory", .right_aligned = true},
                   {.heading = "of", .right_aligned = true},
                   {.heading = "spills", .right_aligned = true}};
  for (const ResourceUse& use : uses) {
    table.rows.push_back({use.target, markdown_code(use.kernel), std::to_string(use.registers),
                          std::to_string(use.block_registers), std::to_string(use.shared_bytes),
                          std::to_string(use.shared_limit), std::to_string(use.spill_bytes)});
  }
  return table;
}

/// "rank 2 of 4 (before: the best was online with 0.5111 ms; this one takes 3.1% ± 0.4 longer)"
std::string PullRequest::ranks_text() const {
  Bench before;
  if (before_) {
    const Result<boost::json::value> json = parse_json(*before_, "the base's record");
    Result<Bench> read =
        json ? bench_from_json(*json, "the base's record") : Result<Bench>(json.error());
    if (read) before = std::move(*read);
  }
  Bench after = before;
  Bench news;
  news.device_name = measured_on_;
  news.rows = {*measured_};
  merge(after, news);
  const std::vector<Standing> then = standings(before, measured_->problem, {});
  const std::vector<Standing> now = standings(after, measured_->problem, {});
  const auto place = std::find_if(now.begin(), now.end(), [&](const Standing& one) {
    return one.row->kernel == measured_->kernel;
  });
  if (place == now.end() || place->rank == 0) return "";
  std::string text = "Rank " + std::to_string(place->rank) + " of " + std::to_string(now.size()) +
                     " on " + markdown_code(measured_on_);
  if (!then.empty() && then.front().rank == 1) {
    text += "; before, the best was " + markdown_code(then.front().row->kernel) + " with " +
            milliseconds(then.front().row->median_ns) + " ms";
    if (const auto difference = difference_text(*then.front().row, *measured_)) {
      text += "; against it, the time is " + *difference;
    }
  } else {
    text += "; before, there was none";
  }
  return text + ".\n";
}

std::string PullRequest::verdict_text() const {
  if (!measured_) return "";
  const BenchRow& row = *measured_;
  std::string text = "### Verdict: " + std::string(to_string(row.status)) + "\n\n";
  if (!row.message.empty()) text += markdown_code(row.message) + "\n\n";
  if (row.status != Status::passed) return text;
  Bench bench;
  bench.rows = {row};
  text += to_markdown(bench_table(bench, {})) + "\n" + ranks_text();
  text += "Largest error " + row.max_error + " (library " + row.library_max_error + "), " +
          row.tolerance_share + " of the tolerance.\n";
  if (!row.badge_notes.empty()) text += "Badges refused: " + markdown_code(row.badge_notes) + "\n";
  return text + "\n";
}

std::string PullRequest::markdown() const {
  constexpr std::size_t most_complaints = 60;
  // The line that .github/comment.sh looks for.
  std::string text = "## rekernel verify\n\nCommit " + markdown_code(head_commit_) + ", onto " +
                     markdown_code(base_) + ".\n\n";
  text += candidate_ ? "Candidate: " + markdown_code(folder_) + "\n\n" : "";
  if (files_.complaints.empty()) {
    text += "No complaints.\n\n";
  } else {
    text += "### " + counted(files_.complaints.size(), "complaint") + "\n\n";
    for (std::size_t i = 0; i < std::min(most_complaints, files_.complaints.size()); ++i) {
      text += "- " + markdown_code(files_.complaints[i].file) + ": " +
              markdown_code(files_.complaints[i].message) + "\n";
    }
    if (files_.complaints.size() > most_complaints) {
      text += "- and " + std::to_string(files_.complaints.size() - most_complaints) + " more\n";
    }
    text += "\n";
  }
  text += verdict_text();
  if (!uses_.empty()) text += "### Resources\n\n" + to_markdown(resource_table(uses_)) + "\n";
  if (!left_.empty()) {
    text += "### Left to do\n\n";
    for (const std::string& one : left_) text += "- " + markdown_code(one) + "\n";
  }
  return text;
}

boost::json::object PullRequest::json() const {
  boost::json::array complaints;
  for (const PullRequestComplaint& one : files_.complaints) {
    complaints.push_back({{"file", one.file}, {"message", one.message}});
  }
  boost::json::object result{{"schema", 1},
                             {"base", base_},
                             {"commit", head_commit_},
                             {"complaints", std::move(complaints)},
                             {"candidate", nullptr},
                             {"verdict", nullptr},
                             {"left", boost::json::value_from(left_)},
                             {"comment", markdown()}};
  if (candidate_) result["candidate"] = folder_;
  if (measured_) result["verdict"] = to_string(measured_->status);
  return result;
}

}  // namespace

int verify_pull_request(const fs::path& root, const PullRequestOptions& options) {
  const Result<ScratchFolder> head = ScratchFolder::make("head");
  if (!head) return bad_input(head.error());
  PullRequest request(root, head->path(), options);
  if (const Result<Ok> examined = request.examine(); !examined) return bad_input(examined.error());
  if (options.comment) {
    if (Result<Ok> written = write_file_atomically(*options.comment, request.markdown());
        !written) {
      return bad_input(written.error());
    }
  }
  if (options.json) {
    std::cout << pretty_json(request.json());
  } else {
    for (const PullRequestComplaint& one : request.complaints()) {
      std::cout << one.file << ": " << one_line(one.message, 4096) << "\n";
    }
    for (const std::string& one : request.left()) std::cout << "left: " << one << "\n";
    std::cout << counted(request.complaints().size(), "complaint") << "\n";
  }
  return request.passed() ? exit_good : exit_verdict_failed;
}

}  // namespace rekernel

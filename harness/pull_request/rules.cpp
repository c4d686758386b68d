#include "harness/pull_request/rules.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "harness/base/text.h"
#include "harness/problems/catalog.h"

namespace rekernel {

namespace {

std::vector<std::string> path_parts(const std::string& path) {
  std::vector<std::string> parts;
  std::istringstream stream(path);
  for (std::string part; std::getline(stream, part, '/');) parts.push_back(part);
  return parts;
}

/// Why a file outside of a candidate's may not be in a pull request that adds one.
std::string reason_against(const std::vector<std::string>& parts) {
  static const std::map<std::string, const char*> by_folder{
      {"harness", "the harness judges the kernel: a change to it needs a pull request of its own"},
      {"ops",
       "the problems decide what is right: a change to them needs a pull request of its own"},
      {"reference",
       "results divide by the references: a change to them needs a pull request of its own"},
      {"replay", "a change to the search or its replay needs a pull request of its own"},
      {"tests", "tests belong to the pull request of the code that they test"},
      {".github", "workflows run with rights: a change to them needs a pull request of its own"},
      {"results",
       "in results/ a candidate may only bring its row of results/<gpu>/bench.json; maintainers "
       "measure the rest"},
      {"generated",
       "a candidate is generated/<problem>/<name>/ with kernel.cu and kernel.json, and a "
       "page generated/<problem>/README.md"},
      {"trajectories",
       "a search is trajectories/<name>.jsonl, with <name>.jsonl.sig and <name>.md"}};
  const auto found = by_folder.find(parts.front());
  return found != by_folder.end() ? found->second
                                  : "it does not belong to a candidate: remove it, or open a pull "
                                    "request of its own for it";
}

constexpr const char* link_mode = "120000";
constexpr const char* executable_mode = "100755";
constexpr const char* submodule_mode = "160000";

/// Whether a candidate may bring the file; sorts it in.
bool belongs(const ChangedFile& file, const std::vector<std::string>& parts,
             PullRequestFiles& files) {
  const std::string& name = parts.back();
  if (parts.front() == "generated" && parts.size() == 4) {
    if (name != "kernel.cu" && name != "kernel.json") return false;
    files.candidates.insert(file.path.substr(0, file.path.rfind('/')));
    return true;
  }
  if (parts.front() == "generated" && parts.size() == 3) {
    if (name != "README.md") return false;
    files.pages.insert(file.path);
    return true;
  }
  if (parts.front() == "results" && parts.size() == 3 && name == "bench.json") {
    if (file.kind != 'D') files.benches.insert(file.path);
    return true;
  }
  // Made of the results by `rekernel report --readme`.
  if (parts.front() == "results" && parts.size() == 3 && parts[1] == "pictures") {
    return name.ends_with(".svg");
  }
  if (file.path == "README.md") return true;
  if (parts.front() == "trajectories" && parts.size() == 2) {
    if (name.ends_with(".jsonl") && file.kind != 'D') files.trajectories.insert(file.path);
    if (name.ends_with(".md")) files.pages.insert(file.path);
    return name.ends_with(".jsonl") || name.ends_with(".jsonl.sig") || name.ends_with(".md");
  }
  return false;
}

void examine_kind(const ChangedFile& file, PullRequestFiles& files) {
  const auto complain = [&](const std::string& what) {
    files.complaints.push_back({file.path, what});
  };
  if (file.new_mode == link_mode) complain("a link: commit the file itself");
  if (file.new_mode == submodule_mode) complain("a repository within the repository: remove it");
  if (file.new_mode == executable_mode && file.old_mode != executable_mode) {
    complain("executable, but no file of a candidate may be: chmod -x");
  }
  if (file.kind == 'D') complain("deleted: a pull request adds a candidate and removes nothing");
}

std::string problem_of(const std::string& path) { return path_parts(path).at(1); }

/// Pages and signatures come with what they are of.
void examine_company(const std::vector<ChangedFile>& changes, PullRequestFiles& files) {
  for (const ChangedFile& file : changes) {
    const std::string& path = file.path;
    if (path.starts_with("generated/") && files.pages.contains(path)) {
      const bool of_candidate =
          std::any_of(files.candidates.begin(), files.candidates.end(),
                      [&](const auto& folder) { return problem_of(folder) == problem_of(path); });
      if (!of_candidate) {
        files.complaints.push_back(
            {path, "the page of a problem for which the pull request has no candidate"});
      }
    } else if (path.starts_with("trajectories/") &&
               (path.ends_with(".md") || path.ends_with(".jsonl.sig"))) {
      const std::string stem = path.substr(0, path.find('.'));
      if (!files.trajectories.contains(stem + ".jsonl")) {
        files.complaints.push_back({path, "belongs to a search that is not in the pull request"});
      }
    }
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// What begins a tag, a comment or the like.
bool has_html(const std::string& line) {
  for (std::size_t at = 0; (at = line.find('<', at)) != std::string::npos; ++at) {
    const char next = at + 1 < line.size() ? line[at + 1] : ' ';
    const bool letter = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z');
    if (letter || next == '/' || next == '!' || next == '?') return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> page_complaints(const std::string& before, const std::string& now) {
  const std::vector<std::string> old = lines_of(before);
  std::vector<std::string> complaints;
  std::size_t kept = 0;
  std::size_t number = 0;
  for (const std::string& line : lines_of(now)) {
    ++number;
    if (kept < old.size() && line == old[kept]) {
      ++kept;
      continue;
    }
    const std::string place = "line " + std::to_string(number) + ": ";
    if (has_html(line)) complaints.push_back(place + "HTML: expected Markdown without tags");
    if (line.find("![") != std::string::npos) complaints.push_back(place + "a picture: remove it");
  }
  if (kept < old.size()) {
    complaints.push_back("line " + std::to_string(kept + 1) +
                         " of the base's page changed or is gone: a candidate only adds to a page");
  }
  return complaints;
}

PullRequestFiles sort_out(const std::vector<ChangedFile>& changes,
                          const std::set<std::string>& in_base) {
  PullRequestFiles files;
  for (const ChangedFile& file : changes) {
    const std::vector<std::string> parts = path_parts(file.path);
    examine_kind(file, files);
    if (file.odd_name) {
      // Nothing of it is looked at: the file has another path.
      files.complaints.push_back({file.path,
                                  "its name holds characters that cannot be shown (here ?), or is "
                                  "too long: name it with letters, digits, _, - and ."});
      continue;
    }
    if (!belongs(file, parts, files)) {
      files.complaints.push_back({file.path, reason_against(parts)});
    }
  }
  std::set<std::string> fresh;
  for (const std::string& folder : files.candidates) {
    if (!in_base.contains(folder)) {
      fresh.insert(folder);
      continue;
    }
    files.complaints.push_back({folder,
                                "the name exists: committed candidates do not change; choose "
                                "another name for yours"});
  }
  files.candidates = std::move(fresh);
  examine_company(changes, files);
  if (files.candidates.size() > 1) {
    for (const std::string& folder : files.candidates) {
      files.complaints.push_back({folder, "one of " + std::to_string(files.candidates.size()) +
                                              " candidates: a pull request has one"});
    }
  }
  if (files.candidates.empty() && files.complaints.empty()) {
    files.complaints.push_back(
        {"generated/", "no new candidate: `rekernel new PROBLEM NAME` starts one"});
  }
  return files;
}

std::vector<ResourceUse> resource_uses(const Candidate& candidate,
                                       const std::vector<CompileCheck>& checks) {
  std::map<std::string, std::int64_t> threads;
  std::map<std::string, std::int64_t> dynamic_bytes;
  for (const Step& step : candidate.program.steps) {
    const auto* launch = std::get_if<KernelLaunch>(&step);
    if (!launch) continue;
    const auto& block = launch->block;
    threads[launch->kernel] = std::max(threads[launch->kernel], block[0] * block[1] * block[2]);
    dynamic_bytes[launch->kernel] =
        std::max(dynamic_bytes[launch->kernel], launch->dynamic_shared_bytes);
  }
  std::vector<ResourceUse> uses;
  for (const CompileCheck& check : checks) {
    const std::optional<Arch> arch = arch_from_string(check.target);
    for (const KernelResources& kernel : check.resources) {
      // Registers are given out to warps, by 256.
      constexpr std::int64_t warp = 32;
      constexpr std::int64_t unit = 256;
      const std::int64_t warps = (threads[kernel.name] + warp - 1) / warp;
      const std::int64_t of_warp = (kernel.registers * warp + unit - 1) / unit * unit;
      uses.push_back({check.target, kernel.name, kernel.registers, warps * of_warp,
                      kernel.static_shared_bytes + dynamic_bytes[kernel.name],
                      arch ? (*arch)->max_shared_bytes_per_block : 0,
                      kernel.spill_store_bytes + kernel.spill_load_bytes});
    }
  }
  return uses;
}

std::vector<PullRequestComplaint> over_limits(const std::string& file,
                                              const std::vector<ResourceUse>& uses) {
  std::vector<PullRequestComplaint> complaints;
  for (const ResourceUse& use : uses) {
    const std::string where = use.kernel + " on " + use.target + ": ";
    if (use.block_registers > registers_of_a_multiprocessor) {
      complaints.push_back({file, where + std::to_string(use.block_registers) +
                                      " registers in a block, of " +
                                      std::to_string(registers_of_a_multiprocessor)});
    }
    if (use.shared_limit > 0 && use.shared_bytes > use.shared_limit) {
      complaints.push_back({file, where + std::to_string(use.shared_bytes) +
                                      " bytes of shared memory in a block, of " +
                                      std::to_string(use.shared_limit)});
    }
  }
  return complaints;
}

std::optional<std::string> placeholder_idea(const Candidate& candidate) {
  constexpr std::size_t fewest_words = 5;
  const Problem* problem = find_problem(candidate.problem);
  if (problem && candidate.idea == scaffold_candidate(*problem, candidate.name).idea) {
    return "idea: still the scaffold's; say in plain language what makes the kernel fast";
  }
  std::istringstream stream(candidate.idea);
  std::size_t words = 0;
  for (std::string word; stream >> word;) {
    ++words;
    const bool stub = word.starts_with("TODO") || word.starts_with("FIXME") || word == "...";
    if (stub) return "idea: '" + word + "' is a placeholder; say what makes the kernel fast";
  }
  if (words >= fewest_words) return std::nullopt;
  return "idea: " + counted(words, "word") + "; say in a sentence what makes the kernel fast";
}

}  // namespace rekernel

#include "harness/cli/pull_request_rules.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "harness/base/text.h"
#include "ops/catalog.h"

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
      {"harness",
       "the harness judges the kernel: what changes it comes as a pull request of its own"},
      {"ops",
       "the problems decide what is right: what changes them comes as a pull request of its own"},
      {"reference",
       "the references are what is divided by: what changes them comes as a pull request "
       "of its own"},
      {"replay", "the search and its replay come as a pull request of their own"},
      {"tests", "tests come with the code that they test, in a pull request of their own"},
      {".github",
       "workflows run with rights: what changes them comes as a pull request of its own"},
      {"results",
       "of results/ a candidate brings its row of results/<gpu>/bench.json alone; the rest "
       "is measured by those who merge"},
      {"generated",
       "a candidate is generated/<problem>/<name>/ with kernel.cu and kernel.json, and a "
       "page generated/<problem>/README.md"},
      {"trajectories",
       "a search is trajectories/<name>.jsonl, with <name>.jsonl.sig and <name>.md"}};
  const auto found = by_folder.find(parts.front());
  return found != by_folder.end()
             ? found->second
             : "it belongs to no candidate; take it out, or bring it as a pull request of its own";
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
  if (parts.front() == "generated" && parts.size() == 3) return name == "README.md";
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
    return name.ends_with(".jsonl") || name.ends_with(".jsonl.sig") || name.ends_with(".md");
  }
  return false;
}

void examine_kind(const ChangedFile& file, PullRequestFiles& files) {
  const auto complain = [&](const std::string& what) {
    files.complaints.push_back({file.path, what});
  };
  if (file.new_mode == link_mode) complain("a link: put the file itself there");
  if (file.new_mode == submodule_mode) complain("a repository within the repository: take it out");
  if (file.new_mode == executable_mode && file.old_mode != executable_mode) {
    complain("executable, which no file of a candidate is: chmod -x");
  }
  if (file.kind == 'D') complain("deleted: a pull request adds a candidate and takes nothing away");
}

}  // namespace

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
                                "the name exists: a candidate that is there is not changed; "
                                "choose another name for yours"});
  }
  files.candidates = std::move(fresh);
  if (files.candidates.size() > 1) {
    for (const std::string& folder : files.candidates) {
      files.complaints.push_back({folder, "one of " + std::to_string(files.candidates.size()) +
                                              " candidates: bring one in a pull request"});
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
    if (stub) return "idea: '" + word + "' stands for it; say what makes the kernel fast";
  }
  if (words >= fewest_words) return std::nullopt;
  return "idea: " + counted(words, "word") + "; say in a sentence what makes the kernel fast";
}

}  // namespace rekernel

#include "harness/profile/profiler.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "harness/base/environment.h"
#include "harness/base/files.h"
#include "harness/base/utf8.h"
#include "harness/candidate/arch.h"
#include "harness/candidate/code.h"
#include "harness/explain/listing.h"
#include "harness/problems/catalog.h"
#include "harness/process/isolate.h"
#include "harness/profile/metrics.h"
#include "harness/profile/ncu_pages.h"
#include "harness/profile/source_lines.h"
#include "harness/project/scratch_folder.h"

namespace rekernel {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes counting_deadline{10};
constexpr std::chrono::seconds reading_deadline{120};
constexpr std::chrono::seconds version_deadline{30};
constexpr std::size_t launches_with_instructions = 3;
constexpr std::size_t hottest_of_a_launch = 5;
constexpr std::size_t longest_log = std::size_t{1} << 20;

/// Folders in which ncu may lie: PATH, then toolkits, then what it installs by itself, newest
/// first.
std::vector<fs::path> folders_of_ncu() {
  std::vector<fs::path> folders;
  const char* path = std::getenv("PATH");
  std::istringstream words(path ? path : "");
  for (std::string folder; std::getline(words, folder, ':');) folders.emplace_back(folder);
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(fs::path(home) / "bin");
  folders.emplace_back("/usr/local/cuda/bin");
  std::set<fs::path, std::greater<>> own;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/opt/nvidia/nsight-compute", ignored)) {
    own.insert(entry.path());
  }
  folders.insert(folders.end(), own.begin(), own.end());
  return folders;
}

/// "^(a|b)$": names of kernels are identifiers.
std::string pattern_of(const std::vector<const KernelLaunch*>& launches) {
  std::set<std::string> names;
  for (const KernelLaunch* launch : launches) names.insert(launch->kernel);
  std::string pattern;
  for (const std::string& name : names) pattern += (pattern.empty() ? "regex:^(" : "|") + name;
  return pattern + ")$";
}

std::vector<const KernelLaunch*> launches_of(const Candidate& candidate) {
  std::vector<const KernelLaunch*> launches;
  for (const Step& step : candidate.program.steps) {
    if (const auto* launch = std::get_if<KernelLaunch>(&step)) launches.push_back(launch);
  }
  return launches;
}

constexpr std::string_view profiled = "profiled_";

/// The same candidate with kernels of names that none of the judge's own has: macros rename them.
/// Machine code keeps its names. A plan in axes becomes the one for its sizes, since what it says
/// in axes has the old names.
Candidate with_own_names(Candidate candidate) {
  if (candidate.program.language != Language::cuda) return candidate;
  candidate.written.clear();
  for (Step& step : candidate.program.steps) {
    auto* launch = std::get_if<KernelLaunch>(&step);
    // The reserved ones cannot be macros of a plan.
    if (!launch || launch->kernel.starts_with('_')) continue;
    const std::string own = std::string(profiled) + launch->kernel;
    candidate.program.compile.defines[launch->kernel] = own;
    launch->kernel = own;
  }
  return candidate;
}

/// What the plan calls a kernel that ncu counted.
std::string planned_name(const std::string& counted) {
  return counted.starts_with(profiled) ? counted.substr(profiled.size()) : counted;
}

/// Which kernel of the judge's own has the name of one of the candidate's; empty if none has.
std::string name_of_others(const std::vector<const KernelLaunch*>& planned,
                           const std::vector<LaunchMetrics>& found) {
  std::map<std::string, int> left;
  for (const KernelLaunch* launch : planned) ++left[launch->kernel];
  for (const LaunchMetrics& launch : found) {
    if (--left[launch.kernel] < 0) return launch.kernel;
  }
  return "";
}

}  // namespace

/// Where a run's files lie.
struct NcuProfiler::Files {
  fs::path candidate;
  fs::path problem;  ///< a stranger's, which no project has; empty for others
  fs::path report;
  fs::path log;
};

std::string ncu_complaint(const std::string& log) {
  constexpr std::string_view mark = "==ERROR==";
  if (log.find("ERR_NVGPUCTRPERM") != std::string::npos) {
    return "the driver lets only administrators read the GPU's counters (ERR_NVGPUCTRPERM): run as "
           "root, in a container with the capability SYS_ADMIN, or load the driver with "
           "NVreg_RestrictProfilingToAdminUsers=0";
  }
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(mark);
    if (at != std::string::npos) return one_line(line.substr(at + mark.size() + 1), 300);
  }
  return "";
}

Result<NcuProfiler> NcuProfiler::find(ToolRunner run) {
  std::error_code ignored;
  for (const fs::path& folder : folders_of_ncu()) {
    if (folder.empty() || !fs::is_regular_file(folder / "ncu", ignored)) continue;
    return at((folder / "ncu").string(), std::move(run));
  }
  return Error{
      "no ncu (Nsight Compute's command line): expected it on PATH, in $CUDA_HOME/bin, in "
      "/usr/local/cuda/bin or below /opt/nvidia/nsight-compute"};
}

Result<NcuProfiler> NcuProfiler::at(const std::string& program, ToolRunner run) {
  ToolCommand command;
  command.arguments = {program, "--version"};
  command.deadline = version_deadline;
  const Result<ToolOutcome> outcome = run(command);
  if (!outcome) return outcome.error();
  const std::size_t found = outcome->output.find("Version ");
  if (!outcome->good() || found == std::string::npos) {
    return Error{program + " --version: expected \"Version …\": " + outcome->last_words};
  }
  std::istringstream words(outcome->output.substr(found));
  std::string version;
  words >> version >> version;
  return NcuProfiler(program, std::move(run), "Nsight Compute " + one_line(version, 40));
}

Result<Profiling> NcuProfiler::profile(const Candidate& candidate, const VisibleGpu& gpu) const {
  Result<ScratchFolder> folder = ScratchFolder::make("profile");
  if (!folder) return folder.error();
  Files files{folder->path() / candidate.name, "", folder->path() / "counted.ncu-rep",
              folder->path() / "log"};
  const Problem* problem = find_problem(candidate.problem);
  if (problem && is_strangers(*problem)) {
    files.problem = folder->path() / "problem.json";
    if (auto written = write_file_atomically(files.problem, problem->text); !written) {
      return written.error();
    }
  }
  const Candidate renamed = with_own_names(candidate);
  if (Result<Ok> written = write_candidate(files.candidate, renamed); !written) {
    return written.error();
  }
  return count(candidate, renamed, gpu, files);
}

Result<Profiling> NcuProfiler::count(const Candidate& candidate, const Candidate& renamed,
                                     const VisibleGpu& gpu, const Files& files) const {
  const std::vector<const KernelLaunch*> launches = launches_of(renamed);
  if (launches.empty()) return Profiling{std::nullopt, "the plan launches no kernel"};
  ToolCommand command;
  command.arguments = {program_,
                       "--target-processes",
                       "all",
                       "--replay-mode",
                       "kernel",
                       "--clock-control",
                       "none",
                       "--cache-control",
                       "all",
                       "--kernel-name-base",
                       "function",
                       "--kernel-name",
                       pattern_of(launches),
                       "--metrics",
                       counted_metrics(),
                       "--export",
                       files.report.string(),
                       "--force-overwrite",
                       "--log-file",
                       files.log.string()};
  for (const char* section : profile_sections) {
    command.arguments.insert(command.arguments.end(), {"--section", section});
  }
  command.arguments.insert(command.arguments.end(),
                           {own_executable(), "evaluate", files.candidate.string(), "--once",
                            "--device", std::to_string(gpu.ordinal), "--deadline",
                            std::to_string(std::chrono::seconds(counting_deadline).count())});
  if (!files.problem.empty()) {
    command.arguments.insert(command.arguments.end(), {"--problem", files.problem.string()});
  }
  command.environment = environment_with({{"REKERNEL_SANDBOX", "off"}, {"LC_ALL", "C"}});
  command.deadline = counting_deadline;
  const Result<ToolOutcome> outcome = run_(command);
  if (!outcome) return outcome.error();
  if (outcome->late) return Profiling{std::nullopt, "counting took longer than ten minutes"};
  const Result<std::string> log = read_file(files.log, longest_log);
  if (const std::string complaint = ncu_complaint(log ? *log : ""); !complaint.empty()) {
    return Error{version_ + ": " + complaint};
  }
  std::error_code ignored;
  if (!fs::exists(files.report, ignored)) {
    return Profiling{std::nullopt, "no launch was counted: " + one_line(outcome->last_words, 300)};
  }
  const Result<std::string> raw = page(files, {"--page", "raw", "--print-units", "base"});
  if (!raw) return raw.error();
  Result<std::vector<LaunchMetrics>> counted = launches_in(*raw);
  if (!counted) return Error{version_ + ", " + counted.error().message};
  if (counted->empty()) return Profiling{std::nullopt, "no launch was counted"};
  if (const std::string name = name_of_others(launches, *counted); !name.empty()) {
    return Profiling{std::nullopt, "a kernel of the judge's own is called " + name +
                                       " as well; expected another name"};
  }
  Profile profile{
      candidate.problem, candidate.name, candidate_sha256(candidate), gpu.name, version_, 0, {}};
  if (const Problem* problem = find_problem(candidate.problem)) {
    profile.least_bytes = problem->min_bytes;
  }
  for (LaunchMetrics& launch : *counted) {
    launch.kernel = planned_name(launch.kernel);
    profile.launches.push_back(launch_profile(launch));
  }
  add_hottest(profile, candidate, gpu, files);
  return Profiling{std::move(profile), ""};
}

Result<std::string> NcuProfiler::page(const Files& files,
                                      const std::vector<std::string>& options) const {
  ToolCommand command;
  command.arguments = {program_,  "--import", files.report.string(), "--csv", "--print-kernel-base",
                       "function"};
  command.arguments.insert(command.arguments.end(), options.begin(), options.end());
  command.environment = environment_with({{"LC_ALL", "C"}});
  command.deadline = reading_deadline;
  Result<ToolOutcome> outcome = run_(command);
  if (!outcome) return outcome.error();
  if (outcome->good()) return std::move(outcome->output);
  const std::string complaint = ncu_complaint(outcome->output);
  return Error{version_ + ": " + (complaint.empty() ? outcome->last_words : complaint)};
}

/// Where the longest launches spend their time. What cannot be read is left out: the rest of the
/// profile stands.
void NcuProfiler::add_hottest(Profile& profile, const Candidate& candidate, const VisibleGpu& gpu,
                              const Files& files) const {
  std::vector<std::size_t> order(profile.launches.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return profile.launches[a].duration_ns > profile.launches[b].duration_ns;
  });
  order.resize(std::min(order.size(), launches_with_instructions));
  std::string disassembly;
  const Result<Listing> listing =
      make_listing(candidate, target_for(ComputeCapability{gpu.major, gpu.minor}));
  if (listing) {
    if (Result<std::string> text = disassembled(*listing)) disassembly = std::move(*text);
  }
  for (const std::size_t i : order) {
    LaunchProfile& launch = profile.launches[i];
    const Result<std::string> source =
        page(files, {"--page", "source", "--print-source", "sass", "--launch-skip",
                     std::to_string(i), "--launch-count", "1"});
    if (!source) continue;
    Result<std::vector<SampledInstruction>> instructions = instructions_in(*source);
    if (!instructions) continue;
    add_lines(*instructions, disassembly, launch.kernel);
    launch.hottest = hottest_of(*instructions, hottest_of_a_launch);
    add_source(launch.hottest, candidate.program.source);
  }
}

}  // namespace rekernel

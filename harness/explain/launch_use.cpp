#include "harness/explain/launch_use.h"

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>
#include <map>
#include <set>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/candidate/arch.h"
#include "harness/records/report.h"

namespace rekernel {

namespace {

std::string kibibytes(std::int64_t bytes) {
  return std::to_string(bytes) + " bytes (" + printed("%.4g", static_cast<double>(bytes) / 1024) +
         " KiB)";
}

/// Why no block of the launch fits a multiprocessor.
std::string refusal_of(const LaunchUse& use, const ChipLimits& limits) {
  const std::int64_t shared = use.static_shared_bytes + use.dynamic_shared_bytes;
  if (shared > limits.shared_bytes_per_block) {
    return std::to_string(use.static_shared_bytes) + " static and " +
           std::to_string(use.dynamic_shared_bytes) + " dynamic bytes of shared memory, " +
           kibibytes(shared) + "; " + use.target + " grants a block " +
           kibibytes(limits.shared_bytes_per_block);
  }
  if (use.occupancy->blocks == 0) {
    return std::to_string(use.registers) + " registers for each of " + std::to_string(use.threads) +
           " threads; a multiprocessor of " + use.target + " has " +
           std::to_string(limits.registers);
  }
  return "";
}

LaunchUse use_of(const KernelLaunch& launch, const KernelResources& kernel,
                 const std::string& target) {
  LaunchUse use;
  use.target = target;
  use.kernel = kernel.name;
  use.registers = kernel.registers;
  use.stack_bytes = kernel.stack_bytes;
  use.spill_bytes = kernel.spill_store_bytes + kernel.spill_load_bytes;
  use.static_shared_bytes = kernel.static_shared_bytes;
  use.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  use.threads = launch.block[0] * launch.block[1] * launch.block[2];
  const std::optional<ComputeCapability> capability = capability_of(target);
  const std::optional<ChipLimits> limits =
      capability ? chip_limits(*capability) : std::optional<ChipLimits>();
  if (!limits) return use;
  use.occupancy = occupancy(
      {use.threads, use.registers, use.static_shared_bytes + use.dynamic_shared_bytes}, *limits);
  use.refusal = refusal_of(use, *limits);
  return use;
}

/// Lines that several targets have in common, each with the list of them.
class NotesOfTargets {
 public:
  void add(const LaunchUse& use, const std::string& note) {
    const std::string key =
        "launches[" + std::to_string(use.step) + "] " + one_line(use.kernel, 100) + ": " + note;
    if (!targets_.contains(key)) order_.push_back(key);
    targets_[key].push_back(use.target);
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> result;
    for (const std::string& key : order_) {
      result.push_back(key + " (" + joined(targets_.at(key)) + ")");
    }
    return result;
  }

 private:
  std::map<std::string, std::vector<std::string>> targets_;
  std::vector<std::string> order_;
};

}  // namespace

std::vector<LaunchUse> launch_uses(const Candidate& candidate,
                                   const std::vector<KernelResources>& kernels,
                                   const std::string& target) {
  std::vector<LaunchUse> uses;
  for (std::size_t step = 0; step < candidate.program.steps.size(); ++step) {
    const auto* launch = std::get_if<KernelLaunch>(&candidate.program.steps[step]);
    if (!launch) continue;
    const auto kernel =
        std::find_if(kernels.begin(), kernels.end(),
                     [&](const KernelResources& one) { return one.name == launch->kernel; });
    if (kernel == kernels.end()) continue;
    uses.push_back(use_of(*launch, *kernel, target));
    uses.back().step = step;
  }
  return uses;
}

std::vector<LaunchUse> launch_uses(const Candidate& candidate,
                                   const std::vector<CompileCheck>& checks) {
  std::vector<LaunchUse> uses;
  for (const CompileCheck& check : checks) {
    std::ranges::move(launch_uses(candidate, check.resources, check.target),
                      std::back_inserter(uses));
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const LaunchUse& a, const LaunchUse& b) { return a.step < b.step; });
  return uses;
}

Table launch_table(const std::vector<LaunchUse>& uses) {
  Table table;
  table.columns = {{.heading = "launch"},
                   {.heading = "target"},
                   {.heading = "registers", .right_aligned = true, .short_heading = "regs"},
                   {.heading = "stack", .right_aligned = true},
                   {.heading = "spills", .right_aligned = true},
                   {.heading = "static shared", .right_aligned = true, .short_heading = "static"},
                   {.heading = "dynamic shared", .right_aligned = true, .short_heading = "dynamic"},
                   {.heading = "threads", .right_aligned = true},
                   {.heading = "blocks/SM", .right_aligned = true},
                   {.heading = "occupancy", .right_aligned = true},
                   {.heading = "limited by"}};
  for (const LaunchUse& use : uses) {
    const std::optional<Occupancy>& fit = use.occupancy;
    table.rows.push_back(
        {std::to_string(use.step) + " " + use.kernel, use.target, std::to_string(use.registers),
         std::to_string(use.stack_bytes), std::to_string(use.spill_bytes),
         std::to_string(use.static_shared_bytes), std::to_string(use.dynamic_shared_bytes),
         std::to_string(use.threads), fit ? std::to_string(fit->blocks) : "–",
         fit ? percent_text(100.0 * fit->share()) : "–", fit ? joined(fit->limited_by) : "–"});
  }
  return table;
}

std::vector<std::string> chip_lines(const std::vector<LaunchUse>& uses) {
  std::vector<std::string> lines;
  std::set<std::string> told;
  for (const LaunchUse& use : uses) {
    const std::optional<ComputeCapability> capability = capability_of(use.target);
    const std::optional<ChipLimits> chip =
        capability ? chip_limits(*capability) : std::optional<ChipLimits>();
    if (!chip || !told.insert(use.target).second) continue;
    lines.push_back(
        "a multiprocessor of " + use.target + " has " + std::to_string(chip->registers) +
        " registers, " + std::to_string(chip->shared_bytes) +
        " bytes of shared memory (a block at most " + std::to_string(chip->shared_bytes_per_block) +
        "), " + std::to_string(chip->max_warps) + " warps, " + std::to_string(chip->max_blocks) +
        " blocks");
  }
  return lines;
}

std::vector<std::string> launch_notes(const std::vector<LaunchUse>& uses) {
  constexpr double few_warps = 0.25;
  NotesOfTargets notes;
  for (const LaunchUse& use : uses) {
    if (use.spill_bytes > 0) {
      notes.add(use,
                "registers spill to local memory: use fewer live values, or allow more "
                "registers by smaller blocks or \"max_registers\"");
    } else if (use.stack_bytes > 0) {
      notes.add(use, "a stack of " + std::to_string(use.stack_bytes) +
                         " bytes a thread lies in local memory: an array that is indexed by what "
                         "is not known at compile time, or a call that was not inlined");
    }
    if (use.refusal.empty() && use.occupancy && use.occupancy->share() < few_warps) {
      notes.add(use, "few warps are resident: " + joined(use.occupancy->limited_by) +
                         "; that is fine where asynchronous copies hide the latency");
    }
  }
  return notes.lines();
}

std::vector<std::string> launch_refusals(const std::vector<LaunchUse>& uses) {
  std::vector<std::string> lines;
  for (const LaunchUse& use : uses) {
    if (use.refusal.empty()) continue;
    lines.push_back("launches[" + std::to_string(use.step) + "] " + one_line(use.kernel, 100) +
                    ": " + use.refusal);
  }
  return lines;
}

boost::json::array to_json(const std::vector<LaunchUse>& uses) {
  boost::json::array array;
  for (const LaunchUse& use : uses) {
    boost::json::object json{{"launch", use.step},
                             {"kernel", use.kernel},
                             {"target", use.target},
                             {"registers", use.registers},
                             {"stack_bytes", use.stack_bytes},
                             {"spill_bytes", use.spill_bytes},
                             {"static_shared_bytes", use.static_shared_bytes},
                             {"dynamic_shared_bytes", use.dynamic_shared_bytes},
                             {"threads", use.threads},
                             {"refusal", use.refusal}};
    if (use.occupancy) {
      json["occupancy"] = {{"blocks", use.occupancy->blocks},
                           {"warps", use.occupancy->warps},
                           {"max_warps", use.occupancy->max_warps},
                           {"limited_by", boost::json::value_from(use.occupancy->limited_by)}};
    }
    array.push_back(std::move(json));
  }
  return array;
}

namespace {

/// Of the checks those of this candidate.
std::vector<LaunchUse> uses_of(const Candidate& candidate,
                               const std::vector<CompileCheck>& checks) {
  const std::string name = candidate.problem + "/" + candidate.name;
  std::vector<CompileCheck> own;
  std::copy_if(checks.begin(), checks.end(), std::back_inserter(own),
               [&](const CompileCheck& check) { return check.candidate == name; });
  return launch_uses(candidate, own);
}

}  // namespace

std::vector<std::string> refused_launches(const std::vector<Candidate>& candidates,
                                          const std::vector<CompileCheck>& checks) {
  std::vector<std::string> lines;
  for (const Candidate& candidate : candidates) {
    for (const std::string& line : launch_refusals(uses_of(candidate, checks))) {
      lines.push_back(candidate.problem + "/" + candidate.name + ": " + line);
    }
  }
  return lines;
}

}  // namespace rekernel

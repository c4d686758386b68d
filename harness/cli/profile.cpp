#include <boost/json.hpp>
#include <iostream>

#include "harness/base/json.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/gpu/choice.h"
#include "harness/profile/profiler.h"
#include "harness/project/candidates.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

Page profile_page() {
  Page page;
  page.description =
      "Says what limits a candidate: shares of the memory's and the matrix unit's peak, why warps "
      "wait, occupancy, bytes moved beside the least, registers and spills, and the hottest "
      "instructions with their lines. The counters are Nsight Compute's (ncu, 2023.3 or newer); "
      "lines need nvdisasm. The candidate runs once, without the sandbox and without a verdict: "
      "evaluate it before. Times under a profiler are no results.";
  page.takes({"kernel", "KERNEL", "PROBLEM/NAME of a committed kernel, or a candidate's folder",
              Count::one},
             text_value("KERNEL", {Names::kernel, Names::folder}));
  page.examples = {{"rekernel profile softmax/cluster_with_prefetch"},
                   {"rekernel profile generated/softmax/cluster_with_prefetch --json"}};
  page.group("Profiling")
      .add_options()("ncu", text_value("PATH", {Names::file}),
                     "Nsight Compute's command line; by default that of PATH, of the CUDA toolkit "
                     "or below /opt/nvidia/nsight-compute")(
          "device", po::value<int>()->value_name("N")->default_value(0),
          "number of the GPU, as nvidia-smi counts");
  page.group("Output").add_options()("json", po::bool_switch(), "print everything as JSON")(
      "tokens", whole_number(50, 100000)->default_value(600), "longest text");
  page.statuses[1] = "this candidate cannot be profiled";
  return page;
}

}  // namespace

int profile_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, profile_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const Result<Candidate> candidate = named_candidate(parsed.get<std::string>("kernel"));
  if (!candidate) return bad_input(candidate.error());
  const Result<NcuProfiler> profiler =
      parsed.has("ncu") ? NcuProfiler::at(parsed.get<std::string>("ncu")) : NcuProfiler::find();
  if (!profiler) return bad_input(profiler.error());
  const Result<VisibleGpu> gpu = chosen_gpu(parsed);
  if (!gpu) return bad_input(gpu.error());
  Result<Profiling> profiling = Error{""};
  {
    Progress progress;
    progress.show("profiling " + candidate->problem + "/" + candidate->name + " …");
    profiling = profiler->profile(*candidate, *gpu);
  }
  if (!profiling) return bad_input(profiling.error());
  if (!profiling->profile) {
    bad_input({candidate->problem + "/" + candidate->name + ": " + profiling->unavailable});
    return exit_verdict_failed;
  }
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*profiling->profile));
  } else {
    constexpr int bytes_of_a_token = 4;
    const Profile& profile = *profiling->profile;
    std::cout << profile.problem << "/" << profile.kernel << " on " << profile.device << ", "
              << profile.tool << "\n"
              << profile_text(profile, static_cast<std::size_t>(bytes_of_a_token) *
                                           static_cast<std::size_t>(parsed.get<int>("tokens")));
  }
  return exit_good;
}

}  // namespace rekernel

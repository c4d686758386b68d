#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/explain/occupancy.h"
#include "harness/project/compile_all.h"

namespace rekernel {

/// What one launch of a plan takes on one target.
struct LaunchUse {
  std::string target;
  std::size_t step = 0;  ///< index in the plan's launches
  std::string kernel;
  int registers = 0;
  std::int64_t stack_bytes = 0;  ///< of local memory, a thread
  std::int64_t spill_bytes = 0;  ///< stored and loaded
  std::int64_t static_shared_bytes = 0;
  std::int64_t dynamic_shared_bytes = 0;
  std::int64_t threads = 0;            ///< of a block
  std::optional<Occupancy> occupancy;  ///< nothing for a chip whose limits are not known
  std::string refusal;                 ///< why the chip cannot launch it; empty if it can
};

/// Of each kernel launch, on the target for which its kernels were compiled.
std::vector<LaunchUse> launch_uses(const Candidate& candidate,
                                   const std::vector<KernelResources>& kernels,
                                   const std::string& target);
/// The same for each target that the candidate was compiled for.
std::vector<LaunchUse> launch_uses(const Candidate& candidate,
                                   const std::vector<CompileCheck>& checks);

Table launch_table(const std::vector<LaunchUse>& uses);
/// What each of their targets has, a line each.
std::vector<std::string> chip_lines(const std::vector<LaunchUse>& uses);
/// What in them costs time: spills, local memory, few resident warps; a line each, once for all
/// targets that have it.
std::vector<std::string> launch_notes(const std::vector<LaunchUse>& uses);
/// What cannot be launched, with the limit and the chip; a line each.
std::vector<std::string> launch_refusals(const std::vector<LaunchUse>& uses);
/// The same of several candidates, with the name of each: "softmax/mine: launches[1] k: 4096 static
/// and 100000 dynamic bytes …".
std::vector<std::string> refused_launches(const std::vector<Candidate>& candidates,
                                          const std::vector<CompileCheck>& checks);
boost::json::array to_json(const std::vector<LaunchUse>& uses);

}  // namespace rekernel

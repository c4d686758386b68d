#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/gpu/choice.h"
#include "harness/terminal/arguments.h"
#include "ops/result.h"
#include "replay/evaluator/pool_evaluator.h"
#include "replay/trajectory/header.h"

namespace rekernel {

/// --gpus and --mixed-gpus.
void add_gpu_options(boost::program_options::options_description& options);

/// --device, for a command that uses one GPU.
void add_device_option(boost::program_options::options_description& options);
Result<VisibleGpu> chosen_gpu(const ParsedArguments& parsed);
/// --device, and --gpus in its place, for what is measured into one record.
void add_device_options(boost::program_options::options_description& options);
Result<std::vector<VisibleGpu>> chosen_gpus(const ParsedArguments& parsed);
Result<std::vector<int>> chosen_devices(const ParsedArguments& parsed);  ///< their numbers

/// The GPUs that the options name, each for the code that the search writes and, unless it takes
/// different ones, of the kind that its first times are of (`timed_on`; empty if it has none). None
/// on a machine without a GPU, where candidates wait.
Result<std::vector<VisibleGpu>> gpus_for(const ParsedArguments& parsed, const Header& header,
                                         const std::string& timed_on);

/// Evaluates candidates of a problem for this target on these GPUs and compiles them on the cores.
/// References of PyTorch are timed in a process for each GPU.
PoolEvaluatorOptions local_evaluator(const std::vector<VisibleGpu>& gpus,
                                     const std::vector<std::string>& references,
                                     const std::string& problem, const std::string& target,
                                     const std::function<void(const std::string&)>& say);

/// Profiles candidates with Nsight Compute on this GPU; looks for it at the first candidate.
std::function<Result<ProfileRecord>(const Candidate&)> ncu_profiles(const VisibleGpu& gpu);

/// How many candidates are compiled at once while these many GPUs of this machine are in use: the
/// cores that they leave, at least one.
unsigned compiling_cores(std::size_t gpus);

/// The part of it that does not depend on who evaluates: the compiler, on compiling_cores().
PoolEvaluatorOptions compiling_evaluator(const std::string& target, std::size_t gpus,
                                         std::function<void(const std::string&)> say);

/// Compiler, driver and libraries, in a line, as evaluations are recorded with.
std::string toolchain_text();

}  // namespace rekernel

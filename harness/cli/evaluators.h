#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/cli/command.h"
#include "harness/gpu/choice.h"
#include "ops/result.h"
#include "replay/device_evaluator.h"

namespace rekernel {

/// --gpus and --mixed-gpus.
void add_gpu_options(boost::program_options::options_description& options);

/// The GPUs that the options name, each for code of this target; none on a machine without a GPU,
/// where candidates wait.
Result<std::vector<VisibleGpu>> gpus_for(const ParsedArguments& parsed, const std::string& target);

/// Evaluates candidates for this target on these GPUs and compiles them on the cores.
DeviceEvaluatorOptions local_evaluator(const std::vector<VisibleGpu>& gpus,
                                       const std::vector<std::string>& references,
                                       const std::string& target,
                                       std::function<void(const std::string&)> say);

/// Compiler, driver and libraries, in a line, as evaluations are recorded with.
std::string toolchain_text();

}  // namespace rekernel

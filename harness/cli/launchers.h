#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "harness/cli/search_options.h"
#include "harness/terminal/arguments.h"
#include "ops/result.h"
#include "replay/evaluator/pool_evaluator.h"

namespace rekernel {

/// --launcher and what goes with it.
void add_launcher_options(boost::program_options::options_description& options);
/// Rejects options that the chosen launcher ignores.
Result<Ok> check_launcher_options(const ParsedArguments& parsed);

/// Evaluates where the options say.
struct LaunchedEvaluator {
  PoolEvaluatorOptions options;
  /// What to do once everything is recorded; may be empty.
  std::function<void()> recorded;
  /// While it lives, cancels jobs on SIGINT and SIGTERM, and then calls `interrupted`.
  std::shared_ptr<void> interruption;
};

/// Checks what can be checked before anything is asked or paid. `fresh`: the search begins, and
/// takes no results that lie about. Jobs are not waited for past the deadline. `interrupted` is
/// called on SIGINT and SIGTERM before the process ends.
Result<LaunchedEvaluator> launched_evaluator(
    const ParsedArguments& parsed, const std::filesystem::path& trajectory, bool fresh,
    const ChosenSearch& chosen, std::optional<std::chrono::steady_clock::time_point> deadline,
    std::function<void(const std::string&)> say, std::function<void()> interrupted);

}  // namespace rekernel

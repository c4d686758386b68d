#pragma once

#include <string>
#include <vector>

#include "harness/evaluation/evaluation.h"
#include "harness/explain/launch_use.h"
#include "harness/service/task.h"

namespace rekernel::service {

/// A bound from above for the number of tokens that a text has in today's vocabularies: a token is
/// three bytes of code or English at the least, on average.
std::size_t most_tokens(const std::string& text);

/// What a model should know to do better next time, most important first, within a budget: status
/// and message, the compiler's errors, the failing element, errors, time, resources: of the
/// launches where they are known, else of the kernels. Parts that do not fit are left out; a part
/// that is cut says so.
std::string text_for_model(const Evaluation& evaluation, Tier tier, int budget_tokens,
                           const std::vector<LaunchUse>& launches = {});

/// The status, or "compiles" where nothing but compiling was asked for: `passed` is said of results
/// alone.
std::string status_word(const Evaluation& evaluation, Tier tier);

}  // namespace rekernel::service

#pragma once

#include <memory>

#include "harness/service/judge.h"
#include "harness/service/log.h"
#include "harness/terminal/arguments.h"
#include "ops/result.h"

namespace rekernel::service {

/// A judge, and what it can do at once.
struct ServingJudge {
  std::shared_ptr<JudgeBackend> judge;
  unsigned cores = 1;
  unsigned untimed_at_once = 1;  ///< on one device
};

/// Options of `serve` that choose the judge: GPUs, cores, a cluster, or one for tests.
void add_judge_options(Page& page);
/// That no option is given which the chosen judge ignores.
Result<Ok> check_judge_options(const ParsedArguments& parsed);
/// Fails where nothing can compile, or nothing can be launched.
Result<ServingJudge> serving_judge(const ParsedArguments& parsed, const Log& log);

}  // namespace rekernel::service

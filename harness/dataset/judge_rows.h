#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/dataset/judged_again.h"
#include "harness/evaluation/launcher.h"
#include "ops/result.h"

namespace rekernel {

/// Which rows are judged again, by whom, and where that is kept.
struct JudgeRows {
  std::filesystem::path dataset;
  std::filesystem::path record;  ///< judged_again_file of the device
  std::int64_t rows = 200;
  std::uint64_t seed = 1;
  std::vector<int> devices = {0};  ///< numbers of the GPUs, one row at a time on each
  std::string device_name;         ///< the kind that they are of
  std::function<void(const Candidate&)> compile_ahead;  ///< into the compiler's cache, while others
                                                        ///< are judged; may be absent
  unsigned compilations = 1;                            ///< at once
  std::function<void(std::size_t done, std::int64_t total)> progress;
  std::function<void(const std::string&)> say;  ///< told, in a line, what became of a GPU
};

/// Draws rows at random, judges each and times it beside its headline reference, and keeps each
/// verdict as it comes: the same call goes on where a kill left off. A record of another draw is
/// refused. A failure of the set-up ends it; what was judged stays.
Result<JudgedAgainRecord> judge_rows(const JudgeRows& asked, EvaluationLauncher& launcher);

}  // namespace rekernel

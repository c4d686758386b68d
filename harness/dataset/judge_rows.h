#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

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
  int device = 0;           ///< number of the GPU
  std::string device_name;  ///< its name
  std::function<void(std::size_t done, std::size_t total)> progress;
};

/// Draws rows at random, judges each and times it beside its headline reference, and keeps each
/// verdict as it comes: the same call goes on where a kill left off. A record of another draw is
/// refused. A failure of the set-up ends it; what was judged stays.
Result<JudgedAgainRecord> judge_rows(const JudgeRows& asked, EvaluationLauncher& launcher);

}  // namespace rekernel

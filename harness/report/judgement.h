#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "harness/candidate/candidate.h"
#include "harness/export/judgement.h"
#include "harness/records/record.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// "0.5086 ms (95% interval 0.5081 to 0.5091)", and so on: a row as texts.
JudgedOn judged_on(const Bench& bench, const BenchRow& row);

/// "fp32: every element within 1e-2 + 1e-2·|truth|, …". `root`: for the class, which the problem's
/// file names.
std::string tolerance_text(const std::filesystem::path& root, const Problem& problem);

/// What the records of `root` say of exactly the candidate's source and plan, whatever it is
/// called. First comes the device `here` (empty: none), then those for whose architecture the
/// candidate is written, then rows of this program's judge, then the newest. Without any row,
/// nothing is judged. The error names a record that cannot be read.
Result<RecordedJudgement> recorded_judgement(const std::filesystem::path& root,
                                             const Candidate& candidate, const std::string& here);

}  // namespace rekernel

#include "harness/dataset/judge_rows.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/candidate/candidate.h"
#include "harness/dataset/dataset_reader.h"
#include "harness/measuring/references.h"
#include "harness/records/record.h"

namespace rekernel {

namespace {

/// Rows that are read at a time: each reading starts Python.
constexpr std::size_t rows_at_a_time = 25;

std::string digest_of(const std::vector<ListedRow>& rows) {
  Sha256 hash;
  for (const ListedRow& row : rows) hash.update(row.id + "\n");
  return hash.hex();
}

/// What is there already, if it is of this draw; the draw is noted where there is nothing.
Result<JudgedAgainRecord> begin_record(const JudgeRows& asked, const Draw& draw) {
  Result<std::optional<JudgedAgainRecord>> there = load_judged_again(asked.record);
  if (!there) return there.error();
  if (*there && !((*there)->draw == draw)) {
    return Error{asked.record.string() + ": is of another draw (" +
                 counted(static_cast<std::size_t>((*there)->draw.rows), "row") + ", seed " +
                 std::to_string((*there)->draw.seed) +
                 ", or of another data set): go on with that one, or move the file away"};
  }
  if (*there) return std::move(**there);
  if (Result<Ok> noted = append_draw(asked.record, draw); !noted) return noted.error();
  return JudgedAgainRecord{draw, {}};
}

Result<JudgedAgain> judge(const DatasetRow& row, const JudgeRows& asked,
                          EvaluationLauncher& launcher) {
  EvaluateOptions options;
  options.device = asked.device;
  options.references = headline_reference_ids(row.candidate.problem);
  const EvaluationReport report = launcher.evaluate(row.candidate, options);
  if (!report.failure.empty()) return Error{row.listed.id + ": " + report.failure};
  const Evaluation& found = report.evaluation;
  return JudgedAgain{row.listed.id,           row.listed.sha256,
                     row.listed.device,       row.listed.status,
                     row.listed.median_ns,    asked.device_name,
                     to_string(found.status), found.timing ? found.timing->median_ns : 0,
                     found.harness,           today()};
}

}  // namespace

Result<JudgedAgainRecord> judge_rows(const JudgeRows& asked, EvaluationLauncher& launcher) {
  const Result<std::vector<ListedRow>> listed = list_dataset(asked.dataset);
  if (!listed) return listed.error();
  if (listed->empty()) return Error{asked.dataset.string() + ": holds no candidate"};
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(asked.rows), listed->size());
  const Draw draw{static_cast<std::int64_t>(count), asked.seed, digest_of(*listed)};
  Result<JudgedAgainRecord> record = begin_record(asked, draw);
  if (!record) return record.error();
  std::set<std::string> done;
  for (const JudgedAgain& row : record->rows) done.insert(row.id);
  std::vector<std::string> left;
  for (const std::size_t index : drawn(listed->size(), count, asked.seed)) {
    if (!done.contains((*listed)[index].id)) left.push_back((*listed)[index].id);
  }
  for (std::size_t from = 0; from < left.size(); from += rows_at_a_time) {
    const std::vector<std::string> ids(
        left.begin() + static_cast<std::ptrdiff_t>(from),
        left.begin() + static_cast<std::ptrdiff_t>(std::min(from + rows_at_a_time, left.size())));
    const Result<std::vector<DatasetRow>> rows = read_dataset_rows(asked.dataset, ids);
    if (!rows) return rows.error();
    for (const DatasetRow& row : *rows) {
      if (asked.progress) asked.progress(record->rows.size(), count);
      Result<JudgedAgain> judged = judge(row, asked, launcher);
      if (!judged) return judged.error();
      if (Result<Ok> kept = append_judged_again(asked.record, *judged); !kept) return kept.error();
      record->rows.push_back(std::move(*judged));
    }
  }
  return record;
}

}  // namespace rekernel

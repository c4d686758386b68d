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
#include "replay/evaluator/pool_evaluator.h"

namespace rekernel {

namespace {

/// Rows that are read at a time: each reading starts Python.
constexpr std::size_t rows_at_a_time = 200;

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

JudgedAgain judged_again(const ListedRow& row, const Evaluation& found,
                         const std::string& device_name) {
  return JudgedAgain{row.id,
                     row.sha256,
                     row.device,
                     row.status,
                     row.median_ns,
                     device_name,
                     to_string(found.status),
                     found.timing ? found.timing->median_ns : 0,
                     found.harness,
                     today()};
}

/// One worker for each GPU; a row is timed beside its headline reference.
std::vector<PoolWorker> workers_for(const JudgeRows& asked, EvaluationLauncher& launcher) {
  return gpu_workers(asked.devices, {}, [&](const Candidate& candidate, EvaluateOptions options) {
    options.references = headline_reference_ids(candidate.problem);
    return launcher.evaluate(candidate, options);
  });
}

/// Judges these rows; each verdict is kept as it comes.
Result<Ok> judge_in(EvaluationPool& pool, const std::vector<DatasetRow>& rows,
                    const JudgeRows& asked, JudgedAgainRecord& record) {
  PoolTask task;
  for (const DatasetRow& row : rows) {
    task.candidates.push_back(&row.candidate);
    task.ids.push_back(row.listed.id);
  }
  task.prepare = [&](std::size_t index) {
    if (asked.compile_ahead) asked.compile_ahead(rows[index].candidate);
    return std::nullopt;
  };
  task.preparers = asked.compilations;
  Result<Ok> kept = Ok{};
  task.settle = [&](std::size_t index, const EvaluationReport& report) {
    JudgedAgain row = judged_again(rows[index].listed, report.evaluation, asked.device_name);
    kept = append_judged_again(asked.record, row);
    record.rows.push_back(std::move(row));
    if (asked.progress) asked.progress(record.rows.size(), record.draw.rows);
    return kept.ok();
  };
  std::vector<std::size_t> unsettled;
  const auto interruption = pool.run(task, unsettled);
  if (!kept) return kept;
  if (interruption) return Error{interruption->message};
  return Ok{};
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
  PoolOptions options;
  options.say = asked.say;
  EvaluationPool pool(workers_for(asked, launcher), std::move(options));
  for (std::size_t from = 0; from < left.size(); from += rows_at_a_time) {
    const std::vector<std::string> ids(
        left.begin() + static_cast<std::ptrdiff_t>(from),
        left.begin() + static_cast<std::ptrdiff_t>(std::min(from + rows_at_a_time, left.size())));
    const Result<std::vector<DatasetRow>> rows = read_dataset_rows(asked.dataset, ids);
    if (!rows) return rows.error();
    if (Result<Ok> judged = judge_in(pool, *rows, asked, *record); !judged) return judged.error();
  }
  return record;
}

}  // namespace rekernel

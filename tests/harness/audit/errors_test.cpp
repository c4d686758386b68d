#include "harness/audit/errors.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <cmath>
#include <limits>
#include <set>

#include "harness/base/files.h"
#include "harness/problems/catalog.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

constexpr double infinity = std::numeric_limits<double>::infinity();

Tolerance tolerance() {
  Tolerance tolerance;
  tolerance.rms_error_over_rms = 1e-3;
  tolerance.max_error_over_rms = 1e-2;
  return tolerance;
}

ErrorRow row(ErrorSource source, const std::string& name, const std::string& status,
             std::optional<RelativeErrors> errors) {
  ErrorRow row;
  row.problem = "softmax";
  row.source = source;
  row.name = name;
  row.sha256 = source == ErrorSource::library ? "" : "0123";
  row.measured = "2000-01-01";
  row.status = status;
  row.errors = errors;
  return row;
}

/// One row of every kind; the order is not that of the table.
ErrorsRecord small_record() {
  ErrorsRecord record;
  record.device_name = "NVIDIA Test 1";
  record.toolchain = {{"NVRTC", "0.0"}};
  ErrorRow crashed = row(ErrorSource::mutant, "far_write", "crashed", std::nullopt);
  crashed.what = "writes far away";
  crashed.message = "illegal address";
  ErrorRow unseen = row(ErrorSource::mutant, "writes_past_the_end", "out_of_bounds_write",
                        RelativeErrors{2e-6, 3e-5, 4e-4, 5e-2});
  unseen.what = "one element too many";
  unseen.message = "wrote past the bounds of 'y'";
  ErrorRow committed = row(ErrorSource::committed, "fast", "passed", RelativeErrors{1e-6, 2e-5});
  committed.badges = {Badge::strict, Badge::robust};
  record.rows = {crashed,
                 row(ErrorSource::mutant, "wrong", "wrong_result",
                     RelativeErrors{infinity, infinity, infinity, infinity}),
                 row(ErrorSource::library, "low_precision", "", RelativeErrors{2.0, 3.0, 0.5, 9.0}),
                 unseen, committed};
  return record;
}

TEST(Errors, AreRelativeToTheTruthsSize) {
  ErrorStats stats;
  stats.rms = 2.0;
  stats.max_abs = 12.0;
  stats.truth_rms = 4.0;
  stats.worst_tolerance_ratio = 0.25;
  stats.worst_strict_ratio = 25.0;
  const RelativeErrors errors = relative_errors(stats);
  EXPECT_DOUBLE_EQ(errors.rms, 0.5);
  EXPECT_DOUBLE_EQ(errors.largest, 3.0);
  EXPECT_DOUBLE_EQ(errors.tolerance, 0.25);
  EXPECT_DOUBLE_EQ(errors.strict, 25.0);
}

TEST(Errors, ShareOfTheBoundsIsTheWorst) {
  EXPECT_DOUBLE_EQ(share_of_bounds({5e-4, 1e-3, 0.1, 0.0}, tolerance()), 0.5);
  EXPECT_DOUBLE_EQ(share_of_bounds({1e-4, 2e-2, 0.1, 0.0}, tolerance()), 2.0);
  EXPECT_DOUBLE_EQ(share_of_bounds({1e-4, 1e-3, 3.0, 99.0}, tolerance()), 3.0);
  const double nan = std::nan("");
  EXPECT_EQ(share_of_bounds({nan, 1e-3, 0.1, 0.0}, tolerance()), infinity);
  EXPECT_EQ(share_of_bounds({1e-4, 1e-3, nan, 0.0}, tolerance()), infinity);
}

TEST(Errors, RecordsSurviveWritingAndReading) {
  const Result<ErrorsRecord> read = errors_from_json(to_json(small_record()), "errors.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(boost::json::serialize(to_json(*read)),
            boost::json::serialize(to_json(small_record())));
  EXPECT_EQ(read->rows[1].errors->rms, infinity);
  EXPECT_FALSE(read->rows[0].errors.has_value());
  EXPECT_DOUBLE_EQ(read->rows[3].errors->largest, 3e-5);
}

TEST(Errors, ARecordWithWordsForNumbersIsRefused) {
  boost::json::value json = to_json(small_record());
  json.at("rows").at(1).at("errors").as_object()["rms"] = "1e-3 or so";
  const Result<ErrorsRecord> read = errors_from_json(json, "errors.json");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("rms"), std::string::npos) << read.error().message;
}

TEST(Errors, TheTableIsSortedWithTheBoundsBetween) {
  Problem problem;
  problem.id = "softmax";
  problem.tolerance = tolerance();
  const Table table = error_table(small_record(), problem);
  std::vector<std::string> names;
  for (const auto& cells : table.rows) {
    ASSERT_EQ(cells.size(), table.columns.size());
    names.push_back(cells[0]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"fast", "writes_past_the_end: one element too many",
                                             "**the bounds**", "low_precision", "wrong",
                                             "far_write: writes far away"}));
  EXPECT_EQ(table.rows[0].back(), "passed: strict, robust");
  EXPECT_EQ(table.rows[1].back(), "out_of_bounds_write (wrote past the bounds of 'y')");
  EXPECT_EQ(table.rows[2][2], "**0.001**");
  EXPECT_EQ(table.rows[3].back(), "outside");
  EXPECT_EQ(table.rows[3][6], "2e+03");
  EXPECT_EQ(table.rows[4].back(), "wrong_result");
  EXPECT_EQ(table.rows[5].back(), "crashed: illegal address");
}

TEST(Errors, AnEvaluationGivesARowForItselfAndOneForEachLibrary) {
  ErrorSubject subject;
  subject.source = ErrorSource::scaffold;
  subject.name = "scaffold";
  Evaluation evaluation;
  evaluation.problem = "matmul_fp32";
  evaluation.status = Status::passed;
  evaluation.badges = {Badge::robust};
  evaluation.badge_notes = "deterministic: repeated runs differ";
  ErrorStats stats;
  stats.rms = 1.0;
  stats.truth_rms = 64.0;
  evaluation.errors = stats;
  ReferenceResult library;
  library.id = "cublas_tf32";
  stats.rms = 2.0;
  library.errors = stats;
  ReferenceResult missing;
  missing.id = "cublas_fp32";
  missing.unavailable = "no cuBLAS";
  evaluation.references = {library, missing};

  const std::vector<ErrorRow> rows = error_rows(subject, evaluation);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].status, "passed");
  EXPECT_EQ(rows[0].message, "deterministic: repeated runs differ");
  EXPECT_DOUBLE_EQ(rows[0].errors->rms, 1.0 / 64.0);
  EXPECT_EQ(rows[1].name, "cublas_tf32");
  EXPECT_EQ(rows[1].status, "");
  EXPECT_DOUBLE_EQ(rows[1].errors->rms, 2.0 / 64.0);
  EXPECT_FALSE(rows[2].errors.has_value());
  EXPECT_EQ(rows[2].message, "no cuBLAS");
}

TEST(Errors, RecordingReplacesWholeProblems) {
  const TemporaryFolder folder;
  ErrorsRecord first = small_record();
  ErrorRow other = row(ErrorSource::library, "cudnn_layernorm", "", RelativeErrors{});
  other.problem = "layernorm";
  first.rows.push_back(other);
  ASSERT_TRUE(record_errors(folder.path(), first).ok());
  ErrorsRecord second = small_record();
  second.rows.resize(1);
  const Result<fs::path> path = record_errors(folder.path(), second);
  ASSERT_TRUE(path.ok()) << path.error().message;
  const Result<ErrorsRecord> read = load_errors(*path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->rows.size(), 2u);
  EXPECT_EQ(read->rows[0].name, "far_write");
  EXPECT_EQ(read->rows[1].name, "cudnn_layernorm");
}

TEST(Errors, ThePageShowsTheRecords) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "ops");
  std::string text;
  for (const Problem& problem : published_problems()) {
    text += "<!-- " + problem.id + ":start -->\n<!-- " + problem.id + ":end -->\n";
  }
  ASSERT_TRUE(write_file_atomically(folder.path() / "ops" / "TOLERANCES.md", text).ok());
  ASSERT_TRUE(record_errors(folder.path(), small_record()).ok());
  const Result<std::string> page = tolerances_page(folder.path());
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_NE(page->find("<!-- matmul_fp32:start -->\n\nNot measured yet.\n\n<!--"),
            std::string::npos)
      << *page;
  EXPECT_NE(page->find("| fast | committed | 1e-06 | 2e-05 |"), std::string::npos) << *page;
  EXPECT_NE(page->find("NVIDIA Test 1, 2000-01-01."), std::string::npos) << *page;
}

TEST(Errors, RowsOfWhatIsNotThereAreStale) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "generated");
  EXPECT_TRUE(stale_errors(folder.path())->empty());
  ASSERT_TRUE(record_errors(folder.path(), small_record()).ok());
  const Result<std::vector<std::string>> complaints = stale_errors(folder.path());
  ASSERT_TRUE(complaints.ok()) << complaints.error().message;
  ASSERT_EQ(complaints->size(), 4u);  // all but the library's
  EXPECT_NE(complaints->back().find("softmax, committed fast"), std::string::npos)
      << complaints->back();
}

TEST(Errors, AMutantThatWasLeftOutIsStale) {
  const fs::path root = REKERNEL_SOURCE_DIR;
  const TemporaryFolder folder;
  for (const char* part : {"generated", "tests"}) {
    fs::create_directory_symlink(root / part, folder.path() / part);
  }
  const Result<std::vector<ErrorSubject>> subjects = error_subjects(root, *find_problem("softmax"));
  ASSERT_TRUE(subjects.ok()) << subjects.error().message;
  ErrorsRecord all = small_record();
  all.rows.clear();
  for (const ErrorSubject& subject : *subjects) {
    all.rows.push_back(row(subject.source, subject.name, "passed", std::nullopt));
    all.rows.back().sha256 = candidate_sha256(subject.candidate);
  }
  ASSERT_TRUE(record_errors(folder.path(), all).ok());
  EXPECT_TRUE(stale_errors(folder.path())->empty());
  ASSERT_EQ(all.rows.back().source, ErrorSource::mutant);
  const std::string left_out = all.rows.back().name;
  all.rows.pop_back();
  ASSERT_TRUE(record_errors(folder.path(), all).ok());
  const Result<std::vector<std::string>> complaints = stale_errors(folder.path());
  ASSERT_EQ(complaints->size(), 1u);
  EXPECT_NE(complaints->front().find("softmax, mutant " + left_out + " was not measured"),
            std::string::npos)
      << complaints->front();
}

TEST(Errors, WhatHasARowOfItsPresentContentIsNotMeasuredAgain) {
  const ErrorSubject subject{ErrorSource::scaffold, "scaffold", "",
                             scaffold_candidate(*find_problem("softmax"), "scaffold")};
  ErrorsRecord record;
  record.rows = {row(ErrorSource::scaffold, "scaffold", "passed", {})};
  EXPECT_EQ(without_rows({subject}, record).size(), 1u);  // of other content
  record.rows[0].sha256 = candidate_sha256(subject.candidate);
  EXPECT_TRUE(without_rows({subject}, record).empty());
  record.rows[0].problem = "layernorm";
  EXPECT_EQ(without_rows({subject}, record).size(), 1u);
}

TEST(Errors, WhatWasLeftOutKeepsItsRow) {
  const auto subject = [](ErrorSource source, const char* name) {
    return ErrorSubject{source, name, "", scaffold_candidate(*find_problem("softmax"), "any")};
  };
  ErrorsRecord old = small_record();
  ErrorsRecord measured;
  measured.device_name = old.device_name;
  measured.rows = {row(ErrorSource::mutant, "wrong", "passed", std::nullopt),
                   row(ErrorSource::mutant, "new", "crashed", std::nullopt)};
  for (ErrorRow& row : measured.rows) row.measured = "2000-01-03";
  const ErrorsRecord record =
      completed(measured, old,
                {subject(ErrorSource::committed, "fast"), subject(ErrorSource::mutant, "wrong"),
                 subject(ErrorSource::mutant, "new")});
  ASSERT_EQ(record.rows.size(), 4u);  // nothing of mutants that are gone
  EXPECT_EQ(record.rows[0].name, "fast");
  EXPECT_EQ(record.rows[1].name, "low_precision");
  EXPECT_EQ(record.rows[2].status, "passed");
  EXPECT_EQ(record.rows[3].name, "new");
  EXPECT_EQ(caption(record.device_name, record.rows), "NVIDIA Test 1, 2000-01-01 to 2000-01-03");
}

TEST(Errors, EveryProblemHasItsScaffoldAndCommittedKernels) {
  for (const Problem& problem : published_problems()) {
    const Result<std::vector<ErrorSubject>> subjects = error_subjects(REKERNEL_SOURCE_DIR, problem);
    ASSERT_TRUE(subjects.ok()) << subjects.error().message;
    std::set<ErrorSource> sources;
    std::set<std::pair<ErrorSource, std::string>> names;
    for (const ErrorSubject& subject : *subjects) {
      EXPECT_EQ(subject.candidate.problem, problem.id);
      sources.insert(subject.source);
      EXPECT_TRUE(names.emplace(subject.source, subject.name).second) << subject.name;
    }
    EXPECT_TRUE(sources.contains(ErrorSource::scaffold)) << problem.id;
    EXPECT_TRUE(sources.contains(ErrorSource::committed)) << problem.id;
  }
}

TEST(Errors, ThePageIsThatOfTheRecords) {
  const Result<std::string> page = tolerances_page(REKERNEL_SOURCE_DIR);
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(*page, *read_file(fs::path(REKERNEL_SOURCE_DIR) / "ops" / "TOLERANCES.md"))
      << "run `rekernel report --readme`";
}

}  // namespace
}  // namespace rekernel

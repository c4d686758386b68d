#pragma once

#include <boost/json/fwd.hpp>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/evaluation.h"
#include "harness/records/record.h"

namespace rekernel {

/// What is told of a candidate beside its verdict: code, plan, what it is for.
void add_candidate_columns(boost::json::object& row, const Candidate& candidate);

/// The problem's title, definition and file. Nothing for a problem that is not in the catalog.
void add_problem_columns(boost::json::object& row, const std::string& problem);

/// What was found out of it: verdict, errors, badges, times with all samples, references.
void add_evaluation_columns(boost::json::object& row, const Evaluation& evaluation);
/// The same of a row of results/<gpu>/bench.json.
void add_evaluation_columns(boost::json::object& row, const BenchRow& bench_row);

}  // namespace rekernel

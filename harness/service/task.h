#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/candidate/candidate.h"
#include "harness/service/scheduler.h"
#include "ops/result.h"

namespace rekernel::service {

/// Names in requests and answers.
const char* to_string(Tier tier);
const char* to_string(Priority priority);
const char* to_string(Stage stage);

/// What is judged and how: everything that decides the answer.
struct Task {
  std::string problem;  ///< id
  boost::json::object
      definition;  ///< of a problem of the client's own; empty for one of /v1/problems
  std::string name = "candidate";
  /// Exactly one of these four. A reply is a model's whole text with a block of CUDA C++ and one of
  /// JSON, the plan, as the search reads it.
  std::string source;  ///< CUDA C++
  std::string ptx;
  std::string cubin;  ///< bytes
  std::string reply;
  boost::json::object plan;  ///< kernel.json; `schema`, `problem` and `name` are filled in
  Tier tier = Tier::timed;
  std::string target;           ///< of tier `compile`: "sm_90a"; empty: the service chooses
  bool all_references = false;  ///< times every library configuration, not the headline alone
  int samples = 60;             ///< timed samples, 10 to 10000
  bool other_sizes = true;      ///< of tier `timed`: a plan in axes is judged there for `any_size`
  int text_tokens = 400;        ///< budget of the text for a model, 0 to 100000; 0: no text
  bool profile = false;         ///< of tier `timed`: what a profiler says stands in the answer
  bool record = false;          ///< the whole record of the evaluation stands in the answer
};

/// Reads a task. Unknown keys are left to the reader's `no_other_keys`.
Task read_task(JsonReader& reader);

/// The task as one line of JSON, the same for equal tasks: it is stored, and hashed to recognise a
/// question that was answered before.
std::string task_text(const Task& task);
Result<Task> task_from_text(const std::string& text);

/// The candidate of a task, or what is wrong with it: then its status is `invalid_plan`.
Result<Candidate> candidate_of(const Task& task);

}  // namespace rekernel::service

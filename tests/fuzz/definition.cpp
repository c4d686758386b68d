#include "ops/definition/definition.h"

#include <cctype>
#include <stdexcept>
#include <string>

#include "harness/problems/problem_file.h"
#include "ops/definition/parser.h"
#include "ops/inputs.h"
#include "property.h"
#include "targets.h"

namespace rekernel::fuzz {
namespace {

constexpr const char* fuzzed_file = "fuzzed.json";

/// Whether the host computes it at once: no number of two digits makes a long axis.
bool is_tiny(std::string_view text, const Problem& problem) {
  constexpr std::int64_t most_operations = 100'000, most_bytes = 100'000;
  std::int64_t workspace = problem.min_bytes;
  for (const Workspace& one : problem.device_oracle.workspaces) workspace += one.bytes;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const auto is_digit = [&](std::size_t at) {
      return std::isdigit(static_cast<unsigned char>(text[at])) != 0;
    };
    if (is_digit(i) && is_digit(i + 1)) return false;
  }
  return problem.operations <= most_operations && workspace <= most_bytes;
}

void check_problem(std::string_view bytes) {
  const Result<Problem> problem = parse_problem(bytes, fuzzed_file, "fuzzed", "fuzz");
  if (!problem) return require_error(problem.error(), fuzzed_file);
  require(!problem->inputs().empty() && !problem->outputs().empty(), "a problem has tensors");
  require(!problem->device_oracle.steps.empty(), "a problem has a truth");
  require(!problem->scaffold.steps.empty(), "a problem has a candidate");
  require(problem->least_bytes <= problem->min_bytes, "the least bytes are no more than all");
  const Result<Problem> again = problem_at(*problem, {});
  require(again.ok(), "a problem is read again", again.ok() ? "" : again.error().message);
  require(again->device_oracle.source == problem->device_oracle.source,
          "a problem gives the same code again");
  if (!is_tiny(bytes, *problem)) return;
  try {
    const HostInputs outputs = problem->host_oracle(host_inputs(*problem, 1));
    for (const Tensor* output : problem->outputs()) {
      require(static_cast<std::int64_t>(outputs.at(output->name).size()) == output->elements(),
              "an output has all elements");
    }
  } catch (const std::out_of_range&) {
    // An index that was read lies outside: made inputs can be anything.
  }
}

/// What is written of a statement is the same statement.
void check_statement(std::string_view bytes) {
  const Result<definition::Statement> statement = definition::parse_statement(bytes);
  if (!statement) return require_error(statement.error(), "column ");
  const std::string text = definition::text_of(*statement);
  if (text.size() > definition::max_statement_length) return;  // grew by blanks
  const Result<definition::Statement> again = definition::parse_statement(text);
  require(again.ok(), "what is written is a statement", text);
  require(again->right == statement->right, "writing changes nothing", text);
  require(definition::text_of(*again) == text, "it is written the same again", text);
}

}  // namespace

void fuzz_definition(std::string_view bytes) {
  check_problem(bytes);
  check_statement(bytes);
}

}  // namespace rekernel::fuzz

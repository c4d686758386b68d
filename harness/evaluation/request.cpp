#include "harness/evaluation/request.h"

#include <array>
#include <boost/json.hpp>
#include <tuple>
#include <utility>

#include "harness/base/fields.h"
#include "harness/base/json_fields.h"
#include "harness/candidate/code.h"
#include "harness/problems/catalog.h"
#include "harness/problems/sizes.h"

namespace rekernel {

namespace {

using Mode = EvaluateOptions::Mode;

constexpr std::array<std::pair<Mode, const char*>, 7> mode_names{{{Mode::verdict, "verdict"},
                                                                  {Mode::errors, "errors"},
                                                                  {Mode::sizes, "sizes"},
                                                                  {Mode::noise, "noise"},
                                                                  {Mode::blinding, "blinding"},
                                                                  {Mode::diagnosis, "diagnosis"},
                                                                  {Mode::once, "once"}}};

const char* name_of(Mode mode) { return mode_names.at(static_cast<std::size_t>(mode)).second; }

std::optional<Mode> find_mode(std::string_view text) {
  for (const auto& [mode, name] : mode_names) {
    if (text == name) return mode;
  }
  return std::nullopt;
}

namespace request_json {

// The words of field lists, in a namespace that has nothing else.
// NOLINTNEXTLINE(google-build-using-namespace)
using namespace json_fields;

constexpr Whole deadline{1, 86400};

constexpr std::tuple option_fields{
    field("mode", &EvaluateOptions::mode, Named<Mode>{name_of, find_mode, "a mode"}),
    field("references", &EvaluateOptions::references, List{text}),
    field("external_references", &EvaluateOptions::external_references, List{text}),
    field("device", &EvaluateOptions::device, Whole{0, 1024}),
    field("samples", &EvaluateOptions::samples, Whole{1, 100000}),
    field("stress", &EvaluateOptions::stress, flag),
    field("other_sizes", &EvaluateOptions::other_sizes, flag, newer),
    field("planted_gap_us", &EvaluateOptions::planted_gap, Whole{0, 1000000}),
    field("noise_runs", &EvaluateOptions::noise_runs, Whole{0, 10000}),
    field("noise_subject", &EvaluateOptions::noise_subject, text),
    field("shared_gpu", &EvaluateOptions::shared_gpu, flag),
    field("startup_deadline_s", &EvaluateOptions::startup_deadline, deadline),
    field("run_deadline_s", &EvaluateOptions::run_deadline, deadline),
    field("seed", &EvaluateOptions::seed, NumberText{}, unless_empty)};

}  // namespace request_json

}  // namespace

boost::json::object to_json(const EvaluateOptions& options) {
  return object_of(options, request_json::option_fields);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): readers are handed on
Result<EvaluateOptions> evaluate_options_from_json(JsonReader reader) {
  EvaluateOptions options = read_object<EvaluateOptions>(reader, request_json::option_fields);
  if (auto error = reader.error()) return *error;
  return options;
}

std::string evaluation_request(const Candidate& candidate, const EvaluateOptions& options) {
  boost::json::object request{{"options", to_json(options)}, {"plan", candidate_json(candidate)}};
  if (!candidate.sizes.empty()) request["sizes"] = to_json(candidate.sizes);
  return joined_fields({boost::json::serialize(request), code_fields(candidate.program),
                        problem_fields(candidate.problem)});
}

Result<RequestedEvaluation> read_evaluation_request(std::string_view bytes,
                                                    const std::string& where) {
  const std::optional<Fields> fields = split_fields(bytes);
  if (!fields || fields->size() != 3) return Error{where + ": it did not arrive in whole"};
  if (auto adopted = adopt_problem((*fields)[2], where); !adopted) return adopted.error();
  Result<boost::json::value> json = parse_json((*fields)[0], where);
  if (!json) return json.error();
  JsonReader reader(where, *json);
  Result<EvaluateOptions> options = evaluate_options_from_json(reader.required("options"));
  if (!options) return options.error();
  const std::string plan = reader.required("plan").string();
  Sizes sizes;
  if (auto other = reader.optional("sizes")) sizes = sizes_from_json(*other);
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  Result<std::vector<Code>> modules = code_from_fields((*fields)[1]);
  if (!modules) return modules.error();
  Result<Candidate> candidate = parse_candidate_at(sizes, plan, *std::move(modules), where);
  if (!candidate) return candidate.error();
  Result<std::shared_ptr<const Problem>> problem = problem_of(*candidate);
  if (!problem) return problem.error();
  return RequestedEvaluation{std::move(*candidate), std::move(*problem), std::move(*options)};
}

}  // namespace rekernel

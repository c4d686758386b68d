#include "harness/evaluation/request.h"

#include <array>
#include <boost/json.hpp>
#include <utility>

#include "harness/base/fields.h"
#include "harness/candidate/code.h"

namespace rekernel {

namespace {

using Mode = EvaluateOptions::Mode;

constexpr std::array<std::pair<Mode, const char*>, 6> mode_names{{{Mode::verdict, "verdict"},
                                                                  {Mode::errors, "errors"},
                                                                  {Mode::noise, "noise"},
                                                                  {Mode::blinding, "blinding"},
                                                                  {Mode::diagnosis, "diagnosis"},
                                                                  {Mode::once, "once"}}};

Mode read_mode(JsonReader reader) {
  const std::string text = reader.string(16);
  for (const auto& [mode, name] : mode_names) {
    if (text == name) return mode;
  }
  reader.expect("a mode");
  return Mode::verdict;
}

}  // namespace

boost::json::object to_json(const EvaluateOptions& options) {
  boost::json::object json{
      {"mode", mode_names.at(static_cast<std::size_t>(options.mode)).second},
      {"references", boost::json::value_from(options.references)},
      {"external_references", boost::json::value_from(options.external_references)},
      {"device", options.device},
      {"samples", options.samples},
      {"stress", options.stress},
      {"planted_gap_us", options.planted_gap.count()},
      {"noise_runs", options.noise_runs},
      {"noise_subject", options.noise_subject},
      {"shared_gpu", options.shared_gpu},
      {"startup_deadline_s", options.startup_deadline.count()},
      {"run_deadline_s", options.run_deadline.count()}};
  if (options.seed) json["seed"] = std::to_string(*options.seed);
  return json;
}

Result<EvaluateOptions> evaluate_options_from_json(JsonReader reader) {
  constexpr std::int64_t longest_deadline_s = 86400;
  EvaluateOptions options;
  options.mode = read_mode(reader.required("mode"));
  options.references = reader.required("references").strings();
  options.external_references = reader.required("external_references").strings();
  options.device = static_cast<int>(reader.required("device").integer(0, 1024));
  options.samples = static_cast<int>(reader.required("samples").integer(1, 100000));
  options.stress = reader.required("stress").boolean();
  options.planted_gap =
      std::chrono::microseconds(reader.required("planted_gap_us").integer(0, 1000000));
  options.noise_runs = static_cast<int>(reader.required("noise_runs").integer(0, 10000));
  options.noise_subject = reader.required("noise_subject").string();
  options.shared_gpu = reader.required("shared_gpu").boolean();
  options.startup_deadline =
      std::chrono::seconds(reader.required("startup_deadline_s").integer(1, longest_deadline_s));
  options.run_deadline =
      std::chrono::seconds(reader.required("run_deadline_s").integer(1, longest_deadline_s));
  if (auto seed = reader.optional("seed")) options.seed = std::stoull(seed->string());
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return options;
}

std::string evaluation_request(const Candidate& candidate, const EvaluateOptions& options) {
  return joined_fields({boost::json::serialize(boost::json::object{
                            {"options", to_json(options)}, {"plan", candidate_json(candidate)}}),
                        code_fields(candidate.program)});
}

Result<RequestedEvaluation> read_evaluation_request(std::string_view bytes,
                                                    const std::string& where) {
  const std::optional<Fields> fields = split_fields(bytes);
  if (!fields || fields->size() != 2) return Error{where + ": it did not arrive in whole"};
  Result<boost::json::value> json = parse_json((*fields)[0], where);
  if (!json) return json.error();
  JsonReader reader(where, *json);
  Result<EvaluateOptions> options = evaluate_options_from_json(reader.required("options"));
  if (!options) return options.error();
  const std::string plan = reader.required("plan").string();
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  Result<std::vector<Code>> modules = code_from_fields((*fields)[1]);
  if (!modules) return modules.error();
  Result<Candidate> candidate = parse_candidate(plan, *std::move(modules), where);
  if (!candidate) return candidate.error();
  return RequestedEvaluation{std::move(*candidate), std::move(*options)};
}

}  // namespace rekernel

#include "replay/trajectory/continuation.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/json.h"

namespace rekernel {

namespace json = boost::json;

json::object to_json(const Continuation& continuation) {
  return {{"event", "continue"},
          {"rounds", continuation.rounds},
          {"token_budget", continuation.token_budget},
          {"round_plans", to_json(continuation.round_plans)},
          {"notes", continuation.notes}};
}

Result<Continuation> continuation_from_json(const json::object& event, const Settings& settings,
                                            const std::string& where) {
  const json::value value = event;
  JsonReader reader(where, value);
  for (const char* key : {"event", "chain"}) reader.optional(key);
  Continuation continuation;
  continuation.rounds = static_cast<int>(reader.required("rounds").integer(settings.rounds, 1000));
  if (auto budget = reader.optional("token_budget")) {
    continuation.token_budget = budget->integer(0, std::int64_t{1} << 50);
  }
  if (auto notes = reader.optional("notes")) continuation.notes = notes->string(10000);
  if (auto plans = reader.optional("round_plans")) {
    Settings longer = settings;
    longer.rounds = continuation.rounds;
    continuation.round_plans = read_round_plans(*plans, longer);
  }
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return continuation;
}

Result<Continuation> load_continuation(const std::filesystem::path& path,
                                       const Settings& settings) {
  Result<json::value> value = read_json_file(path);
  if (!value) return value.error();
  if (!value->is_object()) return Error{path.string() + ": expected an object"};
  return continuation_from_json(value->get_object(), settings, path.string());
}

bool adds_nothing(const Continuation& continuation, const Settings& settings) {
  if (continuation.rounds != settings.rounds) return false;
  if (continuation.token_budget != settings.token_budget) return false;
  return std::all_of(continuation.round_plans.begin(), continuation.round_plans.end(),
                     [&](const RoundPlan& plan) {
                       const RoundPlan* present = settings.plan_of(plan.round);
                       return present && *present == plan;
                     });
}

Result<Settings> continued(const Settings& settings, const Continuation& continuation,
                           const std::string& where) {
  Settings longer = settings;
  longer.rounds = continuation.rounds;
  longer.token_budget = continuation.token_budget;
  for (const RoundPlan& plan : continuation.round_plans) {
    if (settings.plan_of(plan.round)) {
      return Error{where + ": round_plans: round " + std::to_string(plan.round) +
                   " has a plan already"};
    }
    longer.round_plans.push_back(plan);
  }
  return longer;
}

}  // namespace rekernel

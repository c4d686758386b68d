#include "replay/settings.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr std::int64_t most = std::int64_t{1} << 50;

void read_count(JsonReader& reader, const char* key, std::int64_t min, std::int64_t max,
                int& value) {
  if (auto field = reader.optional(key)) value = static_cast<int>(field->integer(min, max));
}

void read_amount(JsonReader& reader, const char* key, std::int64_t min, std::int64_t& value) {
  if (auto field = reader.optional(key)) value = field->integer(min, most);
}

/// Addresses with user names, passwords or queries can hold secrets, and this one is recorded.
void check_address(const std::string& address, JsonReader& reader) {
  const bool scheme = address.starts_with("https://") || address.starts_with("http://");
  if (!scheme || address.find_first_of("@?#") != std::string::npos) {
    reader.expect("an http:// or https:// address without user name, password or query");
  }
}

ModelSettings read_model(JsonReader reader) {
  ModelSettings model;
  model.name = reader.required("name").string(128);
  if (model.name.empty()) reader.fail("a model needs a name");
  if (auto address = reader.optional("base_url")) {
    model.base_url = address->string(1024);
    if (!model.base_url.empty()) check_address(model.base_url, *address);
  }
  if (auto variable = reader.optional("key_variable")) {
    model.key_variable = variable->string(64);
    if (!model.key_variable.empty() && !is_identifier(model.key_variable)) {
      variable->expect("the name of an environment variable");
    }
  }
  reader.no_other_keys();
  return model;
}

RoundPlan read_round_plan(JsonReader reader, const Settings& settings) {
  RoundPlan plan;
  plan.round = static_cast<int>(
      reader.required("round").integer(settings.first_round, settings.last_round()));
  if (auto ideas = reader.optional("ideas")) {
    plan.ideas = ideas->strings(64, max_idea_bytes);
    if (std::any_of(plan.ideas.begin(), plan.ideas.end(), std::mem_fn(&std::string::empty))) {
      ideas->fail("an idea without words");
    }
  }
  if (auto parents = reader.optional("parents")) plan.parents = parents->strings(16, 64);
  if (auto kernels = reader.optional("bank_kernels")) {
    plan.bank_kernels = kernels->strings(16, 64);
  }
  reader.no_other_keys();
  return plan;
}

}  // namespace

const RoundPlan* Settings::plan_of(int round) const {
  for (const RoundPlan& plan : round_plans) {
    if (plan.round == round) return &plan;
  }
  return nullptr;
}

std::vector<RoundPlan> read_round_plans(JsonReader reader, const Settings& settings) {
  std::vector<RoundPlan> plans;
  std::set<int> seen;
  for (JsonReader& plan : reader.array(0, 1000)) {
    plans.push_back(read_round_plan(plan, settings));
    if (!seen.insert(plans.back().round).second) plan.fail("a second plan for this round");
  }
  return plans;
}

json::array to_json(const std::vector<RoundPlan>& plans) {
  json::array entries;
  for (const RoundPlan& plan : plans) {
    json::object entry{{"round", plan.round}, {"ideas", json::value_from(plan.ideas)}};
    if (plan.parents) entry["parents"] = json::value_from(*plan.parents);
    entry["bank_kernels"] = json::value_from(plan.bank_kernels);
    entries.push_back(std::move(entry));
  }
  return entries;
}

Settings read_settings(JsonReader reader) {
  Settings settings;
  read_count(reader, "rounds", 1, 1000, settings.rounds);
  read_count(reader, "first_round", 0, 1, settings.first_round);
  read_count(reader, "ideas", 1, 64, settings.ideas);
  read_count(reader, "branches", 1, 64, settings.branches);
  read_count(reader, "survivors", 1, 16, settings.survivors);
  read_count(reader, "bank", 0, 16, settings.bank);
  if (auto chain = reader.optional("chain")) settings.chain = chain->boolean();
  if (auto models = reader.optional("models")) {
    for (JsonReader& model : models->array(0, 16)) settings.models.push_back(read_model(model));
  }
  read_amount(reader, "token_budget", 0, settings.token_budget);
  read_amount(reader, "prompt_tokens", 1, settings.prompt_tokens);
  read_amount(reader, "reply_tokens", 0, settings.reply_tokens);
  read_amount(reader, "deadline_minutes", 0, settings.deadline_minutes);
  if (auto references = reader.optional("references")) {
    settings.references = references->strings(16, 64);
  }
  if (auto plans = reader.optional("round_plans")) {
    settings.round_plans = read_round_plans(*plans, settings);
  }
  reader.no_other_keys();
  return settings;
}

json::object to_json(const Settings& settings) {
  json::array models;
  for (const ModelSettings& model : settings.models) {
    models.push_back(json::object{
        {"name", model.name}, {"base_url", model.base_url}, {"key_variable", model.key_variable}});
  }
  return {{"rounds", settings.rounds},
          {"first_round", settings.first_round},
          {"ideas", settings.ideas},
          {"branches", settings.branches},
          {"survivors", settings.survivors},
          {"bank", settings.bank},
          {"chain", settings.chain},
          {"models", std::move(models)},
          {"token_budget", settings.token_budget},
          {"prompt_tokens", settings.prompt_tokens},
          {"reply_tokens", settings.reply_tokens},
          {"deadline_minutes", settings.deadline_minutes},
          {"references", json::value_from(settings.references)},
          {"round_plans", to_json(settings.round_plans)}};
}

}  // namespace rekernel

#include "replay/trajectory/settings.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr std::int64_t largest_setting = std::int64_t{1} << 50;

void read_count(JsonReader& reader, const char* key, std::int64_t min, std::int64_t max,
                int& value) {
  if (auto field = reader.optional(key)) value = static_cast<int>(field->integer(min, max));
}

void read_amount(JsonReader& reader, const char* key, std::int64_t min, std::int64_t& value) {
  if (auto field = reader.optional(key)) value = field->integer(min, largest_setting);
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

void read_text(JsonReader& reader, const char* key, std::size_t most_bytes, std::string& value) {
  if (auto field = reader.optional(key)) value = field->string(most_bytes);
}

ModelSettings read_model(JsonReader reader) {
  ModelSettings model;
  model.name = reader.required("name").string(128);
  if (model.name.empty()) reader.fail("a model needs a name");
  if (auto address = reader.optional("base_url")) {
    model.base_url = address->string(1024);
    if (!model.base_url.empty() && !is_plain_address(model.base_url)) {
      address->expect("an http:// or https:// address without user name, password or query");
    }
  }
  if (auto variable = reader.optional("key_variable")) {
    model.key_variable = variable->string(64);
    if (!model.key_variable.empty() && !is_identifier(model.key_variable)) {
      variable->expect("the name of an environment variable");
    }
  }
  read_text(reader, "ask_as", 128, model.ask_as);
  if (auto headers = reader.optional("headers")) model.headers = headers->strings(32, 128);
  read_text(reader, "body", 1 << 16, model.body);
  read_text(reader, "limit_field", 64, model.limit_field);
  read_text(reader, "ca_sha256", 64, model.ca_sha256);
  read_amount(reader, "timeout_s", 0, model.timeout_s);
  read_amount(reader, "reply_tokens", 0, model.reply_tokens);
  if (auto stream = reader.optional("stream")) model.stream = stream->boolean();
  read_text(reader, "prompt_price", 32, model.prompt_price);
  read_text(reader, "reply_price", 32, model.reply_price);
  reader.no_other_keys();
  return model;
}

json::object to_json(const ModelSettings& model) {
  json::object entry{
      {"name", model.name}, {"base_url", model.base_url}, {"key_variable", model.key_variable}};
  const auto put_text_if_set = [&](const char* key, const std::string& value) {
    if (!value.empty()) entry[key] = value;
  };
  put_text_if_set("ask_as", model.ask_as);
  if (!model.headers.empty()) entry["headers"] = json::value_from(model.headers);
  put_text_if_set("body", model.body);
  put_text_if_set("limit_field", model.limit_field);
  put_text_if_set("ca_sha256", model.ca_sha256);
  if (model.timeout_s > 0) entry["timeout_s"] = model.timeout_s;
  if (model.reply_tokens > 0) entry["reply_tokens"] = model.reply_tokens;
  if (model.stream) entry["stream"] = true;
  put_text_if_set("prompt_price", model.prompt_price);
  put_text_if_set("reply_price", model.reply_price);
  return entry;
}

}  // namespace

bool is_plain_address(const std::string& address) {
  // What is left out can hold secrets, and the address is recorded.
  const bool scheme = address.starts_with("https://") || address.starts_with("http://");
  return scheme && address.find_first_of("@?#\\ \t\r\n") == std::string::npos;
}

std::vector<ModelSettings> read_models(JsonReader reader) {
  std::vector<ModelSettings> models;
  for (JsonReader& model : reader.array(0, 16)) models.push_back(read_model(model));
  return models;
}

json::array to_json(const std::vector<ModelSettings>& models) {
  json::array entries;
  for (const ModelSettings& model : models) entries.push_back(to_json(model));
  return entries;
}

const RoundPlan* Settings::plan_of(int round) const {
  for (const RoundPlan& plan : round_plans) {
    if (plan.round == round) return &plan;
  }
  return nullptr;
}

Result<std::vector<ModelSettings>> endpoints_from_json(const json::object& event,
                                                       const std::vector<ModelSettings>& models,
                                                       const std::string& where) {
  const json::value value = event;
  JsonReader reader(where, value);
  for (const char* key : {"event", "chain"}) reader.optional(key);
  JsonReader entries = reader.required("models");
  std::vector<ModelSettings> endpoints = read_models(entries);
  reader.no_other_keys();
  const auto same_name = [](const ModelSettings& a, const ModelSettings& b) {
    return a.name == b.name;
  };
  if (!std::equal(endpoints.begin(), endpoints.end(), models.begin(), models.end(), same_name)) {
    entries.fail("expected the models of the search");
  }
  if (auto error = reader.error()) return *error;
  return endpoints;
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
  if (auto models = reader.optional("models")) settings.models = read_models(*models);
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
  read_count(reader, "tries", 1, 20, settings.tries);
  if (auto mixed = reader.optional("mixed_gpus")) settings.mixed_gpus = mixed->boolean();
  if (auto profiles = reader.optional("profiles")) settings.profiles = profiles->boolean();
  reader.no_other_keys();
  return settings;
}

json::object to_json(const Settings& settings) {
  json::object members{{"rounds", settings.rounds},
                       {"first_round", settings.first_round},
                       {"ideas", settings.ideas},
                       {"branches", settings.branches},
                       {"survivors", settings.survivors},
                       {"bank", settings.bank},
                       {"chain", settings.chain},
                       {"models", to_json(settings.models)},
                       {"token_budget", settings.token_budget},
                       {"prompt_tokens", settings.prompt_tokens},
                       {"reply_tokens", settings.reply_tokens},
                       {"deadline_minutes", settings.deadline_minutes},
                       {"references", json::value_from(settings.references)},
                       {"round_plans", to_json(settings.round_plans)}};
  if (settings.tries != 1) members["tries"] = settings.tries;
  if (settings.mixed_gpus) members["mixed_gpus"] = true;
  if (settings.profiles) members["profiles"] = true;
  return members;
}

}  // namespace rekernel

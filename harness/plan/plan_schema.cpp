// The table of kernel.json as JSON Schema.

#include <algorithm>
#include <boost/json.hpp>

#include "harness/candidate/plan_expression.h"
#include "harness/plan/plan_texts.h"

namespace rekernel {

namespace {

namespace json = boost::json;
using Kind = PlanValue::Kind;

json::object schema_of(const PlanValue& value);

json::object list_schema(const PlanValue& value) {
  json::object schema{{"type", "array"}, {"minItems", value.least}, {"maxItems", value.most}};
  if (value.of.size() == 1) {
    schema["items"] = schema_of(value.of.front());
    return schema;
  }
  json::array by_position;
  for (const PlanValue& one : value.of) by_position.push_back(schema_of(one));
  schema["prefixItems"] = std::move(by_position);
  return schema;
}

json::object schema_of(const PlanValue& value) {
  switch (value.kind) {
    case Kind::integer:
      if (value.least >= 0 && static_cast<std::uint64_t>(value.least) == value.most) {
        return {{"const", value.least}};
      }
      // Limits hold for numbers alone.
      if (value.in_axes) {
        return {{"type", {"integer", "string"}},
                {"minimum", value.least},
                {"maximum", value.most},
                {"minLength", 1},
                {"maxLength", max_plan_expression}};
      }
      return {{"type", "integer"}, {"minimum", value.least}, {"maximum", value.most}};
    case Kind::real:
      return {{"type", "number"}};
    case Kind::boolean:
      return {{"type", "boolean"}};
    case Kind::text: {
      json::object schema{
          {"type", "string"}, {"minLength", value.least}, {"maxLength", value.most}};
      if (!value.pattern.empty()) schema["pattern"] = value.pattern;
      return schema;
    }
    case Kind::choice:
      return {{"enum", json::value_from(value.choices)}};
    case Kind::list:
      return list_schema(value);
    case Kind::map:
      return {{"type", "object"},
              {"maxProperties", value.most},
              {"propertyNames", {{"pattern", value.pattern}}},
              {"additionalProperties", schema_of(value.of.front())}};
    case Kind::object:
      return {{"$ref", "#/$defs/" + value.object}};
    case Kind::any_of: {
      json::array alternatives;
      for (const PlanValue& one : value.of) alternatives.push_back(schema_of(one));
      return {{"anyOf", std::move(alternatives)}};
    }
  }
  return {};
}

json::object schema_of(const PlanObject& object) {
  json::object properties;
  json::array required;
  for (const PlanKey& key : object.keys) {
    json::object schema{{"description", key.meaning}};
    json::object value = schema_of(key.value);
    if (!key.most_words.empty()) value.erase("maximum");
    schema.insert(value.begin(), value.end());
    properties[key.key] = std::move(schema);
    if (key.required) required.push_back(json::string(key.key));
  }
  json::object schema{{"title", object.title}, {"type", "object"}};
  if (!object.meaning.empty()) schema["description"] = object.meaning;
  if (!required.empty()) schema["required"] = std::move(required);
  if (object.one_key) schema["minProperties"] = schema["maxProperties"] = 1;
  schema["properties"] = std::move(properties);
  schema["additionalProperties"] = false;
  return schema;
}

json::object narrowed(const PlanObject& object, Arch arch);

/// What an architecture lacks of a key, as a schema that is held beside the key's own; null where
/// it lacks nothing.
json::value narrowed(const PlanKey& key, Arch arch) {
  if (key.needs && !key.needs(arch)) {
    return key.value.kind == Kind::boolean ? json::value{{"const", false}} : json::value(false);
  }
  if (key.most) {
    const bool is_list = key.value.kind == Kind::list;
    const PlanValue& bounded = is_list ? key.value.of.front() : key.value;
    const json::object most{{"maximum", key.most(arch)}};
    if (static_cast<std::uint64_t>(key.most(arch)) == bounded.most) return {};
    return is_list ? json::value{{"items", most}} : json::value(most);
  }
  json::object within;
  for (const PlanObject* inner : objects_in(key.value)) {
    // Objects that stand in one place have no such keys in common.
    json::object more = narrowed(*inner, arch);
    within.insert(more.begin(), more.end());
  }
  if (within.empty()) return {};
  json::object schema{{"properties", std::move(within)}};
  return key.value.kind == Kind::list ? json::value{{"items", std::move(schema)}}
                                      : json::value(std::move(schema));
}

json::object narrowed(const PlanObject& object, Arch arch) {
  json::object properties;
  for (const PlanKey& key : object.keys) {
    if (json::value schema = narrowed(key, arch); !schema.is_null()) {
      properties[key.key] = std::move(schema);
    }
  }
  return properties;
}

}  // namespace

json::object plan_schema() {
  const std::vector<PlanObject>& objects = plan_objects();
  json::object schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}};
  json::object plan = schema_of(objects.front());
  schema.insert(plan.begin(), plan.end());
  json::array by_arch;
  for (const Arch arch : Arch::all()) {
    json::object condition{{"properties", {{"arch", {{"const", to_string(arch)}}}}}};
    by_arch.push_back({{"if", std::move(condition)},
                       {"then", {{"properties", narrowed(objects.front(), arch)}}}});
  }
  schema["allOf"] = std::move(by_arch);
  json::object definitions;
  for (std::size_t i = 1; i < objects.size(); ++i) {
    definitions[objects[i].name] = schema_of(objects[i]);
  }
  schema["$defs"] = std::move(definitions);
  return schema;
}

}  // namespace rekernel

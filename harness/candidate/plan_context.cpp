#include "harness/candidate/plan_context.h"

#include <boost/json.hpp>
#include <charconv>
#include <limits>

#include "harness/base/text.h"

namespace rekernel {

namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();

std::optional<std::int64_t> integer_in(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  return code == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::string json_quoted(std::string_view text) {
  return one_line(boost::json::serialize(boost::json::string(text)), 100);
}

PlanContext::PlanContext(const Problem& problem, Arch arch, const CompileOptions& compile)
    : problem_(problem), arch_(arch) {
  for (const Attribute& attribute : problem.attributes) {
    if (const auto* size = std::get_if<std::int64_t>(&attribute.value)) {
      names_[attribute.name] = *size;
    }
  }
  for (const auto& [name, value] : compile.defines) {
    const std::optional<std::int64_t> number = integer_in(value);
    if (!number) continue;
    if (!names_.try_emplace(name, *number).second) ambiguous_.push_back(name);
  }
  for (const std::string& name : ambiguous_) names_.erase(name);
}

/// Null once something is wrong.
const PlanNames* PlanContext::names_for(JsonReader& reader) {
  is_in_axes_ = true;
  return reader.error() ? nullptr : &names_;
}

/// The value of an expression; none where there is an error, or nothing to compute.
std::optional<std::int64_t> PlanContext::computed(JsonReader& reader) {
  const std::string text = reader.string(max_plan_expression);
  const PlanNames* names = names_for(reader);
  if (!names) return std::nullopt;
  const auto failed = [&](const Error& error) {
    std::string why = error.message;
    for (const std::string& name : ambiguous_) {
      if (why.find("unknown name '" + name + "'") == std::string::npos) continue;
      why = "'" + name + "' is an axis and a macro of \"defines\": rename the macro";
    }
    reader.fail(json_quoted(text) + ": " + why);
    return std::nullopt;
  };
  if (skips_) {
    const Result<Ok> sound = check_integer(text, *names);
    if (!sound) failed(sound.error());
    return std::nullopt;
  }
  const Result<std::int64_t> value = integer_of(text, *names);
  if (!value) return failed(value.error());
  return *value;
}

std::int64_t PlanContext::integer(JsonReader reader, std::int64_t min, std::int64_t max) {
  if (!reader.is_string()) {
    if (!skips_) return reader.integer(min, max);
    reader.integer(int64_min, int64_max);
    return 1;
  }
  const std::optional<std::int64_t> value = computed(reader);
  if (!value) return skips_ ? 1 : min;
  if (*value >= min && *value <= max) return *value;
  reader.fail("expected an integer from " + std::to_string(min) + " to " + std::to_string(max) +
              ", got " + json_quoted(reader.string(max_plan_expression)) + " = " +
              std::to_string(*value));
  return min;
}

std::uint64_t PlanContext::unsigned_integer(JsonReader reader) {
  if (reader.is_string()) return static_cast<std::uint64_t>(integer(reader, 0, int64_max));
  const boost::json::value& value = reader.raw();
  if (value.is_uint64()) return value.get_uint64();
  if (value.is_int64() && value.get_int64() >= 0) {
    return static_cast<std::uint64_t>(value.get_int64());
  }
  reader.expect("an integer from 0 to 18446744073709551615");
  return 0;
}

bool PlanContext::condition(JsonReader reader) {
  const std::string text = reader.string(max_plan_expression);
  const PlanNames* names = names_for(reader);
  if (!names) return true;
  const Result<bool> holds = condition_of(text, *names);
  if (holds) return *holds;
  reader.fail(json_quoted(text) + ": " + holds.error().message);
  return true;
}

std::optional<std::int64_t> PlanContext::bytes(const std::string& name) const {
  if (const Tensor* tensor = problem_.find_tensor(name)) return tensor->bytes();
  for (const Workspace& workspace : workspaces_) {
    if (workspace.name == name) return workspace.bytes;
  }
  return std::nullopt;
}

std::string PlanContext::known_buffers() const {
  std::vector<std::string> names;
  for (const Tensor& tensor : problem_.tensors) names.push_back(tensor.name);
  for (const Workspace& workspace : workspaces_) names.push_back(workspace.name);
  return joined(names);
}

std::string PlanContext::buffer(JsonReader reader) const {
  const std::string name = reader.string(1u << 16);
  if (!reader.error() && !bytes(name)) {
    reader.fail("unknown buffer " + json_quoted(name) + "; known: " + known_buffers());
  }
  return name;
}

void PlanContext::require(bool (*has_feature)(Arch), JsonReader& reader) const {
  if (has_feature(arch_)) return;
  std::string able;
  for (const Arch arch : Arch::all()) {
    if (has_feature(arch)) able += (able.empty() ? "" : ", ") + json_quoted(to_string(arch));
  }
  reader.fail("needs arch " + able + "; this plan is for " + json_quoted(to_string(arch_)));
}

}  // namespace rekernel

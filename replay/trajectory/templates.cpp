#include "replay/trajectory/templates.h"

#include "harness/base/placeholders.h"

#include <algorithm>
#include <array>

#include "harness/base/json.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/settings.h"

namespace rekernel {
namespace {

constexpr std::array ideas_placeholders = {"problem", "device",  "format",
                                           "seeds",   "history", "idea_count"};
constexpr std::array kernel_placeholders = {"problem", "device", "format", "seeds",
                                            "history", "idea",   "branch"};

/// How often a template names a placeholder: what it holds counts that often.
std::size_t uses_of(const std::string& source, std::string_view placeholder) {
  std::size_t uses = 0;
  walk_template(
      source, [](std::string_view) {}, [&](std::string_view name) { uses += name == placeholder; });
  return uses;
}

template <class Names>
Result<Ok> check_template(const std::string& source, const Names& names, const std::string& where) {
  std::string unknown;
  walk_template(
      source, [](std::string_view) {},
      [&](std::string_view name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) unknown = name;
      });
  if (!unknown.empty()) {
    return Error{where + ": unknown placeholder {{" + one_line(unknown, 64) + "}}"};
  }
  for (const char* name : names) {
    if (uses_of(source, name) != 1) {
      return Error{where + ": expected the placeholder {{" + name + "}} exactly once"};
    }
  }
  return Ok{};
}

}  // namespace

std::string filled_template(const std::string& source, const PlaceholderValues& values) {
  std::string result;
  walk_template(
      source, [&](std::string_view text) { result += text; },
      [&](std::string_view name) {
        const auto value = values.find(name);
        if (value != values.end()) result += value->second;
      });
  return result;
}

PlaceholderValues fixed_values(const FixedTexts& texts) {
  return {{"problem", texts.problem}, {"device", texts.device}, {"format", texts.format}};
}

Result<Ok> check_templates(const Templates& templates, const FixedTexts& texts,
                           std::int64_t prompt_tokens, const std::string& where) {
  if (auto good = check_template(templates.ideas, ideas_placeholders, where + ": templates: ideas");
      !good) {
    return good;
  }
  if (auto good =
          check_template(templates.kernel, kernel_placeholders, where + ": templates: kernel");
      !good) {
    return good;
  }
  const std::size_t longest =
      std::max(filled_template(templates.ideas, fixed_values(texts)).size(),
               filled_template(templates.kernel, fixed_values(texts)).size());
  const std::int64_t needed =
      estimated_tokens(longest + max_idea_bytes + 256 + prompt_reserve_bytes);
  if (needed > prompt_tokens) {
    return Error{where + ": settings: prompt_tokens: the shortest prompt has up to " +
                 std::to_string(needed) + " tokens, the limit is " + std::to_string(prompt_tokens)};
  }
  return Ok{};
}

}  // namespace rekernel

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ops/result.h"

namespace rekernel {

/// Prompt texts with the placeholders {{problem}}, {{device}}, {{format}}, {{seeds}}, {{history}},
/// {{idea}} and {{branch}} (kernel only), and {{idea_count}} (ideas only), each exactly once.
struct Templates {
  std::string ideas;
  std::string kernel;
};

/// What does not change between the prompts of a search. Recorded, so that a later change of a
/// problem's wording or of the format's description does not invalidate the recording.
struct FixedTexts {
  std::string problem;
  std::string device;
  std::string format;
};

/// Room in a prompt for the lines that say how much was left out, and for numbers.
inline constexpr std::size_t prompt_reserve_bytes = 200;

/// What stands in a placeholder's stead, by its name.
using PlaceholderValues = std::map<std::string, std::string, std::less<>>;
/// Those that all prompts of a search share.
PlaceholderValues fixed_values(const FixedTexts& texts);

/// Placeholders without a value are left out.
std::string filled_template(const std::string& source, const PlaceholderValues& values);

/// Unknown or missing placeholders, and a limit that not even the shortest prompt keeps, are
/// errors.
Result<Ok> check_templates(const Templates& templates, const FixedTexts& texts,
                           std::int64_t prompt_tokens, const std::string& where);

}  // namespace rekernel

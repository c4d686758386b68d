#include "harness/candidate/pasting.h"

#include <algorithm>
#include <array>
#include <vector>

namespace rekernel {
namespace {

/// Words that the compiler itself acts on.
constexpr std::array<std::string_view, 6> compiler_words = {"__has_include", "__has_include_next",
                                                            "__has_embed",   "__has_embed_next",
                                                            "_Pragma",       "__pragma"};

/// What the names of header macros round `__has_include` have in common (`_CCCL_HAS_INCLUDE`).
constexpr std::array<std::string_view, 2> parts_of_words = {"has_include", "HAS_INCLUDE"};

enum class Extent { whole, part };

/// Whether pasted words can be `target` (whole), or have it in them (part): then the first may have
/// more before it, and the last more after it.
bool can_be_pasted(std::string_view target, Extent extent, const Words& words) {
  const bool part = extent == Extent::part;
  std::vector<bool> reached(target.size() + 1, false);
  reached[0] = true;
  for (const std::string& word : words) {
    if (!part) break;
    if (word.find(target) != std::string::npos) return true;
    for (std::size_t size = 1; size < target.size(); ++size) {
      if (word.ends_with(target.substr(0, size))) reached[size] = true;
    }
  }
  for (std::size_t at = 0; at < target.size(); ++at) {
    if (!reached[at]) continue;
    const std::string_view rest = target.substr(at);
    for (const std::string& word : words) {
      if (part && word.starts_with(rest)) return true;
      if (rest.starts_with(word)) reached[at + word.size()] = true;
    }
  }
  return reached[target.size()];
}

}  // namespace

std::optional<std::string_view> pasted_word(const Words& words) {
  for (const std::string_view word : compiler_words) {
    if (can_be_pasted(word, Extent::whole, words)) return word;
  }
  for (const std::string_view part : parts_of_words) {
    if (can_be_pasted(part, Extent::part, words)) return part;
  }
  return std::nullopt;
}

}  // namespace rekernel

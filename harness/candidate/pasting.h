#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace rekernel {

using Words = std::set<std::string, std::less<>>;

/// Macros paste words together, and the compiler acts on the result: `__has_` and `include` tell
/// whether a file exists on this machine. The word of this kind that these can be pasted to, or
/// that is among them; nothing if there is none.
std::optional<std::string_view> pasted_word(const Words& words);

}  // namespace rekernel

#pragma once

#include <functional>
#include <string_view>

namespace rekernel {

/// Calls `text` for what stands between the placeholders of a template, "{{word}}", and `name` with
/// the word of each, in their order. What is opened and not closed is text.
void walk_template(std::string_view source, const std::function<void(std::string_view)>& text,
                   const std::function<void(std::string_view)>& name);

}  // namespace rekernel

#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace rekernel {

/// What stands for `{{word}}` in a template.
using TemplateWords = std::map<std::string, std::string, std::less<>>;

/// A file of templates/ with its words filled in. Throws where it, or a word, does not exist.
std::string filled(std::string_view name, const TemplateWords& words);

/// The text as lines of a comment that each begin with `prefix`. Nothing in it continues or ends
/// the comment.
std::string comment(std::string_view text, const std::string& prefix);

}  // namespace rekernel

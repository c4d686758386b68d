#include "harness/export/templates.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "harness/base/json.h"
#include "harness/base/text.h"

namespace rekernel {

namespace {

struct Template {
  std::string_view name;
  std::string_view text;
};

constexpr Template templates[] = {
#include "export_templates.inc"
};

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

std::string filled(std::string_view name, const TemplateWords& words) {
  const auto* const found = std::find_if(std::begin(templates), std::end(templates),
                                         [&](const Template& one) { return one.name == name; });
  if (found == std::end(templates)) throw std::logic_error("no template " + std::string(name));
  std::string result;
  std::string_view rest = found->text;
  for (std::size_t begin; (begin = rest.find('@')) != std::string_view::npos;) {
    result += rest.substr(0, begin);
    const std::size_t end = rest.find('@', begin + 1);
    const std::string_view word =
        end == std::string_view::npos ? "" : rest.substr(begin + 1, end - begin - 1);
    if (!is_word(word)) {  // Python's decorators
      result += '@';
      rest.remove_prefix(begin + 1);
      continue;
    }
    const auto value = words.find(std::string(word));
    if (value == words.end()) {
      throw std::logic_error(std::string(name) + ": nothing stands for @" + std::string(word) +
                             "@");
    }
    result += value->second;
    rest.remove_prefix(end + 1);
  }
  return result.append(rest);
}

std::string comment(std::string_view text, const std::string& prefix) {
  std::string plain = one_line(text, text.size());
  // At the end of a line, either continues the comment in some compiler's eyes.
  std::replace(plain.begin(), plain.end(), '\\', '/');
  for (std::size_t at; (at = plain.find("??")) != std::string::npos;) plain.erase(at, 1);
  std::string result = prefix;
  for (const char c : wrapped(plain, page_columns - prefix.size())) {
    result += c == '\n' ? "\n" + prefix : std::string(1, c);
  }
  return result;
}

}  // namespace rekernel

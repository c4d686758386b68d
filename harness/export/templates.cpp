#include "harness/export/templates.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "harness/base/placeholders.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"

namespace rekernel {

namespace {

struct Template {
  std::string_view name;
  std::string_view text;
};

constexpr Template templates[] = {
#include "export_templates.inc"
};

}  // namespace

std::string filled(std::string_view name, const TemplateWords& words) {
  const auto* const found = std::find_if(std::begin(templates), std::end(templates),
                                         [&](const Template& one) { return one.name == name; });
  if (found == std::end(templates)) throw std::logic_error("no template " + std::string(name));
  std::string result;
  walk_template(
      found->text, [&](std::string_view text) { result += text; },
      [&](std::string_view word) {
        const auto value = words.find(word);
        if (value == words.end()) {
          throw std::logic_error(std::string(name) + ": nothing stands for " + std::string(word));
        }
        result += value->second;
      });
  return result;
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

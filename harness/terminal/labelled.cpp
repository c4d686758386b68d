#include "harness/terminal/labelled.h"

#include "harness/base/text.h"

namespace rekernel {

std::string labelled(const std::string& name, const std::string& text) {
  constexpr std::size_t indent = 14;
  if (text.empty()) return "";
  const std::string start = "  " + name;
  const std::size_t blanks = start.size() < indent ? indent - start.size() : 1;
  return wrapped(start + std::string(blanks, ' ') + text, page_columns, indent) + "\n";
}

}  // namespace rekernel

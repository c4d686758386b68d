#include "harness/base/placeholders.h"

namespace rekernel {

void walk_template(std::string_view source, const std::function<void(std::string_view)>& text,
                   const std::function<void(std::string_view)>& name) {
  while (true) {
    const std::size_t open = source.find("{{");
    const std::size_t close = open == std::string_view::npos ? open : source.find("}}", open);
    if (close == std::string_view::npos) return text(source);
    text(source.substr(0, open));
    name(source.substr(open + 2, close - open - 2));
    source.remove_prefix(close + 2);
  }
}

}  // namespace rekernel

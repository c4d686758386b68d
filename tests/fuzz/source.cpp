#include <algorithm>

#include "harness/base/json.h"
#include "harness/candidate/candidate.h"
#include "property.h"
#include "targets.h"

namespace rekernel::fuzz {

void fuzz_source(std::string_view bytes) {
  if (!is_utf8(bytes)) return;  // refused before
  const std::string where = "somebody/kernel.cu";
  const Result<Ok> verdict = check_includes(bytes, where);
  if (!verdict) {
    require_error(verdict.error(), where + ": line ");
    const auto line = std::stoll(verdict.error().message.substr(where.size() + 7));
    const auto lines = std::count(bytes.begin(), bytes.end(), '\n') + 1;
    require(line >= 1 && line <= lines, "the line exists", verdict.error().message);
  }
  // Where it stands does not matter, and what is refused, no later line can hide.
  const std::string text(bytes);
  require(check_includes("int a;\n" + text, where).ok() == verdict.ok(),
          "lines before change nothing");
  const bool whole_line =
      !text.ends_with('\r') && !text.ends_with('\\');  // else a newline joins it
  if (!verdict && whole_line) {
    require(!check_includes(text + "\n#include <mma.h>\n", where), "later lines hide nothing");
  }
}

}  // namespace rekernel::fuzz

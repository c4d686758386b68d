// kernel.json with its code, as one candidate.

#include <boost/json.hpp>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/candidate/candidate.h"
#include "harness/candidate/code.h"
#include "harness/candidate/plan_reader.h"

namespace rekernel {

Result<Candidate> parse_candidate(std::string_view plan_json, std::vector<Code> modules,
                                  const std::string& where) {
  if (plan_json.size() > max_plan_bytes) {
    return Error{where + ": larger than " + std::to_string(max_plan_bytes) + " bytes"};
  }
  if (modules.empty() || modules.size() > most_modules) {
    return Error{where + ": expected 1 to " + std::to_string(most_modules) + " modules of code"};
  }
  // The plan's macros matter to the code's words, but nothing of the plan is read where the code
  // alone is no good.
  const auto file_of_module = [&](std::size_t module) {
    return std::filesystem::path(where)
        .replace_filename(code_file(modules[module].language, module))
        .string();
  };
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    if (auto sound = check_size_and_text(modules[i], file_of_module(i)); !sound) {
      return sound.error();
    }
    bytes += modules[i].text.size();
  }
  if (bytes > max_code_bytes) {
    return Error{where + ": " + counted(modules.size(), "module") + " of " + std::to_string(bytes) +
                 " bytes: expected at most " + std::to_string(max_code_bytes)};
  }
  const auto value = parse_json(plan_json, where);
  if (!value) return value.error();
  auto candidate = read_plan(where, *value, modules);
  if (!candidate) return candidate;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    auto sound = check_words(modules[i], candidate->program.compile, file_of_module(i));
    if (!sound) return sound.error();
  }
  return candidate;
}

Result<Candidate> parse_candidate(std::string_view plan_json, std::string source,
                                  const std::string& where) {
  return parse_candidate(plan_json, std::vector<Code>{{Language::cuda, std::move(source)}}, where);
}

}  // namespace rekernel

#include "harness/dataset/modules.h"

#include <boost/json.hpp>

#include "harness/base/base64.h"
#include "harness/base/utf8.h"
#include "harness/candidate/code.h"

namespace rekernel {

namespace json = boost::json;

namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20;

}  // namespace

const char* language_name(Language language) {
  switch (language) {
    case Language::cuda:
      return "cuda";
    case Language::ptx:
      return "ptx";
    case Language::cubin:
      return "cubin";
  }
  return "";
}

json::object module_column(const std::string& file, Language language, std::string_view bytes) {
  const bool is_text = is_utf8(bytes) && bytes.find('\0') == std::string_view::npos;
  json::object module{{"file", file}, {"language", language_name(language)}};
  module[is_text ? "text" : "base64"] = is_text ? std::string(bytes) : base64(bytes);
  return module;
}

json::array module_columns(const Program& program) {
  const std::vector<Code> modules = code_of(program);
  json::array columns;
  if (modules.size() == 1 && modules.front().language == Language::cuda) return columns;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    columns.push_back(
        module_column(code_file(modules[i].language, i), modules[i].language, modules[i].text));
  }
  return columns;
}

std::vector<Code> modules_from_columns(JsonReader reader) {
  std::vector<Code> modules;
  for (JsonReader& entry : reader.array()) {
    Code code;
    JsonReader language = entry.required("language");
    const std::string name = language.string();
    if (name == "ptx" || name == "cubin") {
      code.language = name == "ptx" ? Language::ptx : Language::cubin;
    } else if (name != "cuda") {
      language.expect("cuda, ptx or cubin");
    }
    const auto text = entry.optional("text");
    if (text && !text->raw().is_null()) {
      code.text = JsonReader(*text).string(most_bytes);
    } else {
      JsonReader encoded = entry.required("base64");
      auto bytes = from_base64(encoded.string(most_bytes));
      if (!bytes) encoded.expect("base64");
      code.text = bytes.value_or("");
    }
    modules.push_back(std::move(code));
  }
  return modules;
}

}  // namespace rekernel

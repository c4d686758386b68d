#include "harness/records/published.h"

#include <boost/json.hpp>

#include "harness/base/json.h"

namespace rekernel {

Result<std::map<std::string, PublishedFigures>> load_published(const std::filesystem::path& root) {
  const std::filesystem::path path = root / "results" / "published.json";
  Result<boost::json::value> json = read_json_file(path);
  if (!json) return json.error();

  JsonReader reader(path.string(), *json);
  reader.required("schema").integer(1, 1);
  std::map<std::string, PublishedFigures> figures;
  for (auto& [problem, entry] : reader.required("problems").entries()) {
    PublishedFigures& one = figures[problem];
    if (auto value = entry.optional("percent_of_pytorch_eager")) {
      one.percent_of_pytorch_eager = value->real();
    }
    if (auto value = entry.optional("percent_of_torch_compile")) {
      one.percent_of_torch_compile = value->real();
    }
  }
  if (auto error = reader.error()) return *error;
  return figures;
}

}  // namespace rekernel

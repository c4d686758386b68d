#include "harness/records/published.h"

#include <boost/json.hpp>

#include "harness/base/json.h"

namespace rekernel {

namespace {

PublishedFigures read_figures(JsonReader reader) {
  PublishedFigures figures;
  if (auto value = reader.optional("percent_of_pytorch_eager")) {
    figures.percent_of_pytorch_eager = value->real();
  }
  if (auto value = reader.optional("percent_of_torch_compile")) {
    figures.percent_of_torch_compile = value->real();
  }
  figures.note = reader.optional_string("note");
  return figures;
}

PublishedSearches read_searches(JsonReader reader) {
  constexpr std::int64_t most = 1'000'000'000'000;
  PublishedSearches searches;
  searches.problems = static_cast<int>(reader.required("problems").integer(1, 1000));
  searches.rounds = static_cast<int>(reader.required("rounds").integer(1, 1000));
  searches.models = reader.required("models").strings();
  searches.prompt_tokens = reader.required("prompt_tokens").integer(0, most);
  searches.completion_tokens = reader.required("completion_tokens").integer(0, most);
  for (JsonReader& round : reader.required("best_found_in_rounds").array(1)) {
    searches.best_found_in_rounds.push_back(static_cast<int>(round.integer(0, 1000)));
  }
  return searches;
}

}  // namespace

Result<Published> load_published_record(const std::filesystem::path& root) {
  const std::filesystem::path path = root / "results" / "published.json";
  Result<boost::json::value> json = read_json_file(path);
  if (!json) return json.error();

  JsonReader reader(path.string(), *json);
  reader.required("schema").integer(1, 1);
  Published published;
  JsonReader source = reader.required("source");
  published.authors = source.required("authors").string();
  published.title = source.required("title").string();
  published.publisher = source.required("publisher").string();
  published.date = source.required("date").string();
  published.device = reader.required("device").string();
  published.meaning = reader.required("meaning").string();
  for (auto& [problem, entry] : reader.required("problems").entries()) {
    published.figures[problem] = read_figures(entry);
  }
  if (auto searches = reader.optional("searches")) published.searches = read_searches(*searches);
  if (auto error = reader.error()) return *error;
  return published;
}

Result<std::map<std::string, PublishedFigures>> load_published(const std::filesystem::path& root) {
  Result<Published> published = load_published_record(root);
  if (!published) return published.error();
  return std::move(published->figures);
}

}  // namespace rekernel

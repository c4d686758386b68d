#include "replay/search/study.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/candidate/known_problem.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_problems = 1000;

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> read_problems(JsonReader reader) {
  std::vector<std::string> problems = reader.strings(most_problems, 64);
  std::set<std::string> seen;
  for (const std::string& problem : problems) {
    const auto known = known_problem(problem);
    if (!known) reader.fail(known.error().message);
    if (!seen.insert(problem).second) reader.fail("\"" + problem + "\" appears twice");
  }
  if (problems.empty()) reader.expect("at least one problem");
  return problems;
}

void check_common(JsonReader reader, const SearchFile& common) {
  if (!common.problem.empty()) reader.fail("problem: expected none, since the study has a list");
  if (common.settings.profiles) {
    reader.fail(
        "settings.profiles: expected none, since \"profiled\" says which searches show them");
  }
}

}  // namespace

bool Study::is_profiled(std::string_view problem) const { return has(profiled, problem); }

std::string seed_of_lot(const std::vector<std::string>& problems) {
  std::string list;
  for (const std::string& problem : problems) list += problem + "\n";
  return sha256_hex(list);
}

std::vector<std::string> drawn(const std::vector<std::string>& problems, std::size_t count) {
  const std::string seed = seed_of_lot(problems);
  std::vector<std::pair<std::string, std::string>> lots;
  for (const std::string& problem : problems) {
    lots.emplace_back(sha256_hex(seed + " " + problem), problem);
  }
  std::sort(lots.begin(), lots.end());
  lots.resize(std::min(count, lots.size()));
  std::vector<std::string> chosen;
  for (const std::string& problem : problems) {
    const auto is_it = [&](const auto& lot) { return lot.second == problem; };
    if (std::any_of(lots.begin(), lots.end(), is_it)) chosen.push_back(problem);
  }
  return chosen;
}

Result<Study> load_study(const fs::path& path) {
  const Result<boost::json::value> value = read_json_file(path);
  if (!value) return value.error();
  JsonReader reader(path.string(), *value);
  reader.required("schema").integer(1, 1);
  Study study;
  study.name = reader.required("name").identifier();
  study.problems = read_problems(reader.required("problems"));
  JsonReader profiled = reader.required("profiled");
  study.profiled = profiled.strings(most_problems, 64);
  const std::vector<std::string> lot = drawn(study.problems, study.profiled.size());
  if (study.profiled != lot) profiled.expect("what the lot draws: " + joined(lot));
  JsonReader search = reader.required("search");
  study.common = read_search_file(search);
  check_common(search, study.common);
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return study;
}

std::optional<SearchFile> search_of(const Study& study, std::string_view search_name) {
  for (const std::string& problem : study.problems) {
    if (study.search_name(problem) != search_name) continue;
    SearchFile file = study.common;
    file.problem = problem;
    file.settings.profiles = study.is_profiled(problem);
    return file;
  }
  return std::nullopt;
}

}  // namespace rekernel

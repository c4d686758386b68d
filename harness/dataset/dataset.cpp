#include "harness/dataset/dataset.h"

#include <map>

#include "harness/base/harness_digest.h"
#include "harness/base/text.h"
#include "harness/dataset/fixture_rows.h"
#include "harness/dataset/judged_again.h"
#include "harness/dataset/kernel_rows.h"
#include "harness/dataset/licenses.h"
#include "harness/dataset/texts.h"
#include "harness/project/generator.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

/// Rows on their way to the generator, a line each. The first thing that goes wrong stays, and
/// nothing is written after it.
class WrittenRows : public RowStream {
 public:
  explicit WrittenRows(Generator& generator) : generator_(generator) {}

  void put(std::string_view config, Split split, const json::object& row) override {
    if (error_) return;
    // Preferences and repairs are made of texts that were looked at as messages.
    const bool looked_at = config == config::preferences || config == config::repairs;
    if (!looked_at) {
      if (const Result<Ok> checked = check_texts(row); !checked) {
        error_ = Error{std::string(config) + " " + std::string(row.at("name").as_string()) + ": " +
                       checked.error().message};
        return;
      }
    }
    made_of_.put(config, split, row);
    write({{"config", config}, {"split", to_string(split)}, {"row", row}});
  }

  void write(const json::object& line) {
    if (!ended_ && !generator_.write(json::serialize(line) + "\n")) ended_ = true;
  }

  const std::optional<Error>& error() const { return error_; }
  const MakeUp& made_of() const { return made_of_; }

 private:
  Generator& generator_;
  MakeUp made_of_;
  std::optional<Error> error_;
  bool ended_ = false;  ///< the generator reads no more: it has said why
};

json::array to_json(const std::vector<SearchSummary>& searches) {
  json::array array;
  for (const SearchSummary& one : searches) {
    array.push_back({{"name", one.name},
                     {"problem", one.problem},
                     {"replies", one.replies},
                     {"notes", one.notes},
                     {"models", json::value_from(one.models)},
                     {"device", one.device},
                     {"events", one.events}});
  }
  return array;
}

json::array families_json() {
  json::array array;
  for (const Family& family : listed_families()) {
    json::array problems;
    for (const std::string_view problem : family.problems) problems.push_back(json::value(problem));
    array.push_back({{"name", family.name},
                     {"split", to_string(family.split)},
                     {"problems", std::move(problems)}});
  }
  return array;
}

/// What the card says beside what it can count.
Result<json::object> about(const DatasetSources& sources,
                           const std::vector<SearchSummary>& searches, const MakeUp& made_of) {
  Result<json::array> judged = judged_again_summaries(sources.root);
  if (!judged) return judged.error();
  const License& license = *find_license(sources.license);
  return json::object{
      {"license", license.spdx},          {"license_url", license.url},
      {"judge", harness_digests().judge}, {"searches", to_json(searches)},
      {"families", families_json()},      {"near_duplicate_threshold", NearDuplicates::threshold},
      {"made_of", made_of.json()},        {"judged_again", std::move(*judged)}};
}

Result<Ok> check_names(const SearchSummary& search, const fs::path& path,
                       std::map<std::string, fs::path>& names) {
  const auto [entry, is_new] = names.emplace(search.name, path);
  if (is_new) return Ok{};
  return Error{path.string() + ": the search " + entry->second.string() + " is called " +
               one_line(search.name, 100) + " too: rows are named by their search"};
}

}  // namespace

Result<std::vector<SearchSummary>> put_all_rows(const DatasetSources& sources, RowStream& rows) {
  NearDuplicates near_duplicates;
  std::vector<SearchSummary> searches;
  std::map<std::string, fs::path> names;
  const std::size_t parts = sources.trajectories.size() + 1;
  const auto tell = [&](std::size_t done, const std::string& what) {
    if (sources.progress) sources.progress(done, parts, what);
  };
  for (const fs::path& trajectory : sources.trajectories) {
    tell(searches.size(), trajectory.filename().string());
    Result<SearchSummary> search =
        put_search_rows(trajectory, sources.license, sources.differences, near_duplicates, rows);
    if (!search) return search.error();
    if (Result<Ok> named = check_names(*search, trajectory, names); !named) return named.error();
    searches.push_back(std::move(*search));
  }
  tell(searches.size(), "kernels, cheats and mutants");
  const fs::path& root = sources.root;
  for (const Result<Ok>& put :
       {put_kernel_rows(root, sources.license, near_duplicates, rows),
        put_imported_rows(root, near_duplicates, rows), put_cheat_rows(root, sources.license, rows),
        put_mutant_rows(root, sources.license, rows),
        put_profile_rows(root, sources.license, rows)}) {
    if (!put) return put.error();
  }
  return searches;
}

Result<Ok> check_dataset_folder(const fs::path& named) {
  const fs::path folder = resolved_folder(named);
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder, ignored))) return Ok{};
  const std::string expected = "; expected an empty folder, or none";
  if (!fs::is_directory(folder, ignored))
    return Error{folder.string() + ": is no folder" + expected};
  std::error_code status;
  const bool empty = fs::is_empty(folder, status);
  if (status) return Error{folder.string() + ": " + status.message()};
  if (!empty) return Error{folder.string() + ": is not empty" + expected};
  return Ok{};
}

Result<MakeUp> make_dataset(const DatasetSources& sources, const fs::path& named) {
  const fs::path folder = resolved_folder(named);
  if (!find_license(sources.license)) {
    return Error{"licence " + one_line(sources.license, 100) + ": expected one of " +
                 known_licenses()};
  }
  if (Result<Ok> good = check_dataset_folder(folder); !good) return good.error();
  std::error_code status;
  fs::create_directories(folder.parent_path(), status);
  if (status) return Error{folder.parent_path().string() + ": " + status.message()};
  const Result<StagingFolder> staging = StagingFolder::beside(folder);
  if (!staging) return staging.error();
  Result<Generator> generator = Generator::start(
      {"/usr/bin/env", "bash", REKERNEL_SOURCE_DIR "/harness/dataset_parquet/make.sh", "write",
       staging->path().string()});
  if (!generator) return generator.error();

  WrittenRows rows(*generator);
  const Result<std::vector<SearchSummary>> searches = put_all_rows(sources, rows);
  if (rows.error()) return *rows.error();
  if (!searches) return searches.error();
  const Result<json::object> end = about(sources, *searches, rows.made_of());
  if (!end) return end.error();
  // Without this line, the generator takes its input for cut short, and makes nothing.
  rows.write({{"about", *end}});
  const Result<int> ended = generator->finish();
  if (!ended) return ended.error();
  if (*ended != 0) {
    return Error{"the data set could not be made (above); nothing was written to " +
                 folder.string()};
  }
  if (Result<Ok> put = put_in_place(staging->path(), folder); !put) return put.error();
  return rows.made_of();
}

}  // namespace rekernel

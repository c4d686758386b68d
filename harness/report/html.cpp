#include "harness/report/html.h"

#include <boost/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/project/generator.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

/// Lies in every report and names its files.
constexpr const char* report_marker = "report.json";

/// The files that a report says it consists of, from its folder; nothing if it is no report.
Result<std::set<std::string>> files_of_report(const fs::path& folder) {
  const Result<boost::json::value> json = read_json_file(folder / report_marker);
  if (!json) return json.error();
  JsonReader reader(report_marker, *json);
  reader.required("rekernel_report").integer(1, 1);
  const std::vector<std::string> files = reader.required("files").strings();
  if (auto error = reader.error()) return *error;
  std::set<std::string> names(files.begin(), files.end());
  names.insert(report_marker);
  return names;
}

/// The exit status of the generator, which reads the data.
Result<int> run_generator(const boost::json::object& data, const fs::path& folder,
                          const std::set<std::string>& pictures = {}) {
  std::vector<std::string> words{
      "/usr/bin/env", "bash", REKERNEL_SOURCE_DIR "/harness/report_html/make.sh", folder.string()};
  words.insert(words.end(), pictures.begin(), pictures.end());
  Result<Generator> generator = Generator::start(words);
  if (!generator) return generator.error();
  // One that has ended early says why itself.
  (void)generator->write(boost::json::serialize(data));
  return generator->finish();
}

}  // namespace

Result<Ok> check_report_folder(const fs::path& named) {
  const fs::path folder = resolved_folder(named);
  const std::string expected = "; expected a report of ours, an empty folder, or none";
  if (!fs::exists(folder)) return Ok{};
  if (!fs::is_directory(folder)) return Error{folder.string() + ": is no folder" + expected};
  if (fs::is_empty(folder)) return Ok{};
  if (!fs::exists(folder / report_marker)) {
    return Error{folder.string() + ": is no report" + expected};
  }
  const Result<std::set<std::string>> files = files_of_report(folder);
  if (!files)
    return Error{folder.string() + ": is no report (" + files.error().message + ")" + expected};
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) continue;
    const std::string name = entry.path().lexically_relative(folder).string();
    if (!files->contains(name)) {
      return Error{folder.string() + ": holds " + name + ", which is not of the report" + expected};
    }
  }
  return Ok{};
}

Result<Ok> write_html_report(const boost::json::object& data, const fs::path& named) {
  const fs::path folder = resolved_folder(named);
  if (Result<Ok> good = check_report_folder(folder); !good) return good;
  std::error_code status;
  fs::create_directories(folder.parent_path(), status);
  if (status) return Error{folder.parent_path().string() + ": " + status.message()};
  const Result<StagingFolder> staging = StagingFolder::beside(folder);
  if (!staging) return staging.error();
  const Result<int> ended = run_generator(data, staging->path());
  if (!ended) return ended.error();
  if (*ended != 0) {
    return Error{"the pages could not be made (above); " + folder.string() + " is as it was"};
  }
  return put_in_place(staging->path(), folder);
}

Result<Ok> write_pictures(const boost::json::object& data, const fs::path& folder,
                          const std::set<std::string>& names) {
  const Result<int> ended = run_generator(data, folder, names);
  if (!ended) return ended.error();
  if (*ended != 0) return Error{"the pictures could not be made (above)"};
  return Ok{};
}

}  // namespace rekernel

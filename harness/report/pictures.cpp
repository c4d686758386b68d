#include "harness/report/pictures.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "harness/base/files.h"
#include "harness/project/scratch_folder.h"
#include "harness/report/data.h"
#include "harness/report/html.h"
#include "harness/report/same_picture.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

fs::path folder_of_pictures(const fs::path& root) { return root / "results" / "pictures"; }

}  // namespace

Result<std::map<std::string, std::string>> make_pictures(const fs::path& root,
                                                         const std::string& readme) {
  std::map<std::string, std::string> made;
  const std::set<std::string> names = pictures_of(readme);
  if (names.empty()) return made;
  const Result<ScratchFolder> scratch = ScratchFolder::make("pictures");
  if (!scratch) return scratch.error();
  RecordComplaints complaints(root);
  if (Result<Ok> done = write_pictures(report_data(complaints), scratch->path(), names); !done) {
    return done.error();
  }
  for (const std::string& name : names) {
    Result<std::string> picture = read_file(scratch->path() / "pictures" / name);
    if (!picture) return Error{"README.md: the report has no picture " + name};
    made[name] = std::move(*picture);
  }
  return made;
}

Result<std::vector<GeneratedComplaint>> stale_pictures(const fs::path& root) {
  const Result<std::string> readme = read_file(root / "README.md");
  if (!readme) return readme.error();
  std::vector<GeneratedComplaint> complaints;
  const std::set<std::string> names = pictures_of(*readme);
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder_of_pictures(root), status)) {
    const std::string name = entry.path().filename().string();
    if (names.contains(name)) continue;
    complaints.push_back({"results/pictures/" + name,
                          "no generator makes it: expected the pictures that README.md shows"});
  }
  const Result<std::map<std::string, std::string>> made = make_pictures(root, *readme);
  if (!made) return made.error();
  for (const auto& [name, picture] : *made) {
    const Result<std::string> present = read_file(folder_of_pictures(root) / name);
    if (present && is_same_picture(*present, picture)) continue;
    complaints.push_back({"results/pictures/" + name,
                          present ? "not the picture that the records give; run `rekernel report "
                                    "--readme`"
                                  : "missing, and README.md shows it; run `rekernel report "
                                    "--readme`"});
  }
  std::sort(complaints.begin(), complaints.end(),
            [](const auto& one, const auto& other) { return one.file < other.file; });
  return complaints;
}

}  // namespace rekernel

#include "harness/audit/gallery.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/records/report.h"

namespace rekernel {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t longest_deadline_s = 600;
constexpr std::int64_t longest_time_ns = 1'000'000'000;
constexpr std::int64_t largest_percent = 100'000;

fs::path gallery_folder(const fs::path& root) { return root / "tests" / "adversarial"; }

std::string read_line(JsonReader reader) {
  const std::string text = reader.string();
  if (text.empty() || text.find('\n') != std::string::npos) reader.expect("one line of text");
  return text;
}

Status read_status(JsonReader reader) {
  const std::optional<Status> status = status_from_string(reader.string());
  if (!status) reader.expect("a status such as \"wrong_result\"");
  return status.value_or(Status::passed);
}

std::vector<Status> read_statuses(JsonReader reader) {
  std::vector<Status> statuses;
  for (JsonReader& status : reader.array()) statuses.push_back(read_status(status));
  return statuses;
}

double read_share(JsonReader reader) {
  const double share = reader.real();
  if (!(share > 0.0 && share <= 1.0))
    reader.expect("a share of the tolerance, above 0 and at most 1");
  return share;
}

Table gallery_table(const std::vector<Cheat>& cheats) {
  Table table;
  for (const char* heading : {"fixture", "cheat", "verdict", "how it is caught", "seen at"}) {
    table.columns.push_back({.heading = heading, .markdown = true});
  }
  for (const Cheat& cheat : cheats) {
    std::string verdict = std::string("`") + to_string(cheat.status) + "`";
    for (const Status other : cheat.other_statuses) {
      verdict += std::string(" or `") + to_string(other) + "`";
    }
    for (const std::string& badge : cheat.without_badges.names())
      verdict += ", not `" + badge + "`";
    if (cheat.worst_error_at_least) verdict += ", its largest error shown";
    table.rows.push_back({"`" + cheat.folder.filename().string() + "`", cheat.cheat, verdict,
                          cheat.caught_by, cheat.source});
  }
  return table;
}

}  // namespace

Result<Cheat> load_cheat(const fs::path& folder) {
  const fs::path path = folder / "expected.json";
  Result<boost::json::value> json = read_json_file(path);
  if (!json) return json.error();
  JsonReader reader(path.string(), *json);
  Cheat cheat;
  cheat.folder = folder;
  cheat.cheat = read_line(reader.required("cheat"));
  cheat.status = read_status(reader.required("status"));
  if (auto others = reader.optional("or")) cheat.other_statuses = read_statuses(*others);
  cheat.caught_by = read_line(reader.required("caught_by"));
  if (auto source = reader.optional("source")) cheat.source = read_line(*source);
  if (auto badges = reader.optional("without_badges"))
    cheat.without_badges = badges_from_json(*badges);
  if (auto deadline = reader.optional("deadline_s")) {
    cheat.deadline_s = deadline->integer(1, longest_deadline_s);
  }
  if (auto deadline = reader.optional("compile_deadline_s")) {
    cheat.compile_deadline_s = deadline->integer(1, longest_deadline_s);
  }
  if (auto least = reader.optional("no_faster_than_ns")) {
    cheat.no_faster_than_ns = least->integer(1, longest_time_ns);
  }
  if (auto most = reader.optional("no_more_than_percent")) {
    cheat.no_more_than_percent = most->integer(1, largest_percent);
  }
  if (auto least = reader.optional("worst_error_at_least")) {
    cheat.worst_error_at_least = read_share(*least);
  }
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return cheat;
}

bool Cheat::allows(Status verdict) const {
  return verdict == status || std::count(other_statuses.begin(), other_statuses.end(), verdict) > 0;
}

Result<std::vector<fs::path>> cheat_folders(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code status;
  for (fs::directory_iterator it(gallery_folder(root), status), end; !status && it != end;
       it.increment(status)) {
    if (it->is_directory(status)) folders.push_back(it->path());
  }
  if (status) return Error{gallery_folder(root).string() + ": cannot be listed"};
  std::sort(folders.begin(), folders.end());
  return folders;
}

Result<std::vector<Cheat>> load_cheats(const fs::path& root) {
  Result<std::vector<fs::path>> folders = cheat_folders(root);
  if (!folders) return folders.error();
  std::vector<Cheat> cheats;
  for (const fs::path& folder : *folders) {
    Result<Cheat> cheat = load_cheat(folder);
    if (!cheat) return cheat.error();
    cheats.push_back(std::move(*cheat));
  }
  return cheats;
}

Result<std::string> gallery_page(const fs::path& root) {
  const fs::path path = gallery_folder(root) / "README.md";
  Result<std::string> page = read_file(path);
  if (!page) return page.error();
  Result<std::vector<Cheat>> cheats = load_cheats(root);
  if (!cheats) return cheats.error();
  const std::string count = std::to_string(cheats->size()) + " fixtures.\n";
  Result<Ok> replaced = replace_section(
      *page, "gallery", "\n" + count + "\n" + to_markdown(gallery_table(*cheats)) + "\n", path);
  if (!replaced) return replaced.error();
  return page;
}

}  // namespace rekernel

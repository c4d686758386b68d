#include "harness/project/unfinished_searches.h"

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/project/git.h"
#include "replay/playback/replayer.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr const char* ours = "# Made by rekernel search: searches that have not ended.\n";

bool is_committed(const fs::path& root, const fs::path& path) {
  const Git git(root);
  if (!git.run({"rev-parse", "--show-toplevel"})) return true;  // nobody to ask
  const std::string name = fs::relative(path, root).string();
  return git.run({"ls-files", "--error-unmatch", "--", name}).ok();
}

}  // namespace

bool is_unfinished(const fs::path& trajectory) {
  constexpr std::streamoff longest_stop = 1 << 16;
  std::ifstream file(trajectory, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = file.tellg();
  if (!file || bytes <= 0) return true;
  const std::streamoff begin = std::max<std::streamoff>(0, bytes - longest_stop);
  std::string tail(static_cast<std::size_t>(bytes - begin), '\0');
  file.seekg(begin);
  if (!file.read(tail.data(), static_cast<std::streamsize>(tail.size()))) return true;
  if (tail.back() != '\n') return true;
  tail.pop_back();
  const std::size_t line = tail.rfind('\n');
  const Result<boost::json::value> event =
      parse_json(line == std::string::npos ? tail : tail.substr(line + 1), trajectory.string());
  if (!event || !event->is_object()) return true;
  const boost::json::value* name = event->get_object().if_contains("event");
  return !name || !name->is_string() || name->get_string() != "stop";
}

std::vector<std::string> search_names(const fs::path& root) {
  std::vector<std::string> names;
  for (const fs::path& path : recorded_trajectories(root)) names.push_back(path.stem().string());
  std::sort(names.begin(), names.end());  // "a" before "a-1", unlike "a.jsonl"
  return names;
}

std::vector<fs::path> finished_trajectories(const fs::path& root,
                                            std::vector<std::string>& left_out) {
  std::vector<fs::path> finished;
  for (fs::path& path : recorded_trajectories(root)) {
    if (!is_unfinished(path) || is_committed(root, path)) {
      finished.push_back(std::move(path));
      continue;
    }
    const std::string name = path.stem().string();
    left_out.push_back("trajectories/" + name +
                       ".jsonl: unfinished and not committed, left out; rekernel search " + name +
                       " --resume goes on with it");
  }
  return finished;
}

Result<Ok> ignore_unfinished_searches(const fs::path& root) {
  std::error_code ignored;
  if (!fs::exists(root / ".git", ignored)) return Ok{};
  const fs::path path = root / "trajectories" / ".gitignore";
  if (fs::exists(path, ignored)) {
    const Result<std::string> present = read_file(path);
    if (!present || !present->starts_with(ours)) return Ok{};
  }
  std::string names;
  for (const fs::path& trajectory : recorded_trajectories(root)) {
    if (is_unfinished(trajectory)) names += "/" + trajectory.stem().string() + ".*\n";
  }
  if (names.empty()) {
    fs::remove(path, ignored);
    return Ok{};
  }
  return write_file_atomically(path, std::string(ours) + "/.gitignore\n" + names);
}

}  // namespace rekernel

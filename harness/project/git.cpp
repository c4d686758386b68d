#include "harness/project/git.h"

#include <algorithm>

#include "harness/base/utf8.h"
#include "harness/process/tool.h"

namespace rekernel {

namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What a zero byte ends each of.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

Result<std::string> Git::run(const std::vector<std::string>& words,
                             const std::vector<std::string>& before) const {
  std::vector<std::string> all = before;
  for (const char* word : {"git", "-C", root_.c_str(), "-c", "core.quotePath=false",
                           // Nothing that the checkout brings is run.
                           "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}) {
    all.emplace_back(word);
  }
  all.insert(all.end(), words.begin(), words.end());
  constexpr std::chrono::seconds patience{300};
  ToolCommand tool;
  tool.arguments = std::move(all);
  tool.deadline = patience;
  Result<ToolOutcome> outcome = run_tool(tool);
  if (!outcome) return outcome.error();
  if (!outcome->good()) return Error{"git: " + outcome->last_words};
  return std::move(outcome->output);
}

Result<std::string> Git::merge_base(const std::string& base) const {
  if (Result<std::string> inside = run({"rev-parse", "--show-toplevel"}); !inside) {
    return Error{root_.string() + ": " + inside.error().message +
                 "; verify BASE works in a clone of the repository"};
  }
  const Result<std::string> shallow = run({"rev-parse", "--is-shallow-repository"});
  const bool is_shallow = shallow && first_line(*shallow) == "true";
  const char* deepen = "; this clone is shallow: `git fetch --unshallow` gets the rest";
  const Result<std::string> commit =
      run({"rev-parse", "--verify", "--quiet", "--end-of-options", base + "^{commit}"});
  if (!commit) {
    return Error{base + ": not a commit in this clone" +
                 (is_shallow ? deepen
                             : "; `git fetch origin` gets what is new, and a branch that was "
                               "rebased has other commits than before")};
  }
  const Result<std::string> common = run({"merge-base", first_line(*commit), "HEAD"});
  if (!common || common->empty()) {
    return Error{base + ": has no commit in common with HEAD" +
                 (is_shallow
                      ? deepen
                      : "; put your commits on top of it: `git rebase --onto " + base + "`")};
  }
  return first_line(*common);
}

Result<std::vector<ChangedFile>> Git::changes_since(const std::string& commit) const {
  const Result<std::string> different =
      run({"diff-tree", "-r", "--raw", "--no-renames", "--no-ext-diff", "-z", commit, "HEAD"});
  if (!different) return different.error();
  std::vector<ChangedFile> changes;
  const std::vector<std::string> parts = parts_of(*different);
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    // ":100644 100755 <object> <object> M", then the path
    const std::string& head = parts[i];
    constexpr std::size_t mode_digits = 6;
    if (head.size() < 2 * mode_digits + 2) return Error{"git diff-tree: not understood: " + head};
    changes.push_back({parts[i + 1], head.back(), head.substr(1, mode_digits),
                       head.substr(2 + mode_digits, mode_digits), false});
  }
  for (ChangedFile& change : changes) {
    const std::string shown = one_line(change.path, longest_path);
    change.odd_name = shown != change.path;
    change.path = shown;
  }
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return changes;
}

Result<std::vector<std::string>> Git::uncommitted() const {
  const Result<std::string> changed =
      run({"diff-index", "--name-only", "--no-renames", "--no-ext-diff", "-z", "HEAD", "--"});
  if (!changed) return changed.error();
  const Result<std::string> others = run({"ls-files", "--others", "--exclude-standard", "-z"});
  if (!others) return others.error();
  std::vector<std::string> paths = parts_of(*changed);
  for (std::string& path : parts_of(*others)) paths.push_back(std::move(path));
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<Ok> Git::copy_of_head(const std::filesystem::path& folder) const {
  namespace fs = std::filesystem;
  // An index of its own: neither the user's index nor the work tree is touched.
  const fs::path index = folder.string() + ".index";
  const std::string variable = "GIT_INDEX_FILE=" + index.string();
  Result<std::string> done = run({"read-tree", "HEAD"}, {"env", variable});
  if (done) {
    done = run({"checkout-index", "--all", "--quiet", "--prefix=" + folder.string() + "/"},
               {"env", variable});
  }
  std::error_code ignored;
  fs::remove(index, ignored);
  if (!done) return done.error();
  std::vector<fs::path> links;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.is_symlink(ignored)) links.push_back(entry.path());
  }
  for (const fs::path& link : links) fs::remove(link, ignored);
  return Ok{};
}

std::optional<std::string> Git::content(const std::string& commit, const std::string& path) const {
  Result<std::string> shown = run({"show", commit + ":" + path});
  if (!shown) return std::nullopt;
  return std::move(*shown);
}

}  // namespace rekernel

#include "harness/problems/catalog.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/problems/problem_file.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

const fs::path& problems_folder() {
  static const fs::path folder = fs::path(REKERNEL_SOURCE_DIR) / "ops" / "problems";
  return folder;
}

/// The files of all problems.
const std::vector<fs::path>& problem_files() {
  static const std::vector<fs::path> files = [] {
    std::vector<fs::path> found;
    std::error_code failure;
    for (const auto& group : fs::directory_iterator(problems_folder(), failure)) {
      if (!group.is_directory()) continue;
      for (const auto& file : fs::directory_iterator(group.path(), failure)) {
        if (file.path().extension() == ".json") found.push_back(file.path());
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }();
  return files;
}

/// Problems by file, read when they are first asked for.
class Store {
 public:
  const Result<Problem>& at(const fs::path& file) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Result<Problem>>& problem = problems_[file];
    if (!problem) problem = std::make_unique<Result<Problem>>(read_problem(file));
    return *problem;
  }

 private:
  std::mutex mutex_;
  std::map<fs::path, std::unique_ptr<Result<Problem>>> problems_;
};

Store& store() {
  static Store one;
  return one;
}

struct Whole {
  std::vector<Problem> problems;
  std::vector<Error> errors;
};

/// The published problems come first, since most people come for them.
bool comes_first(const Problem& a, const Problem& b) {
  const auto key = [](const Problem& problem) {
    return std::tuple(problem.group != published_group, problem.group, problem.source.number,
                      problem.id);
  };
  return key(a) < key(b);
}

const Whole& whole() {
  static const Whole all = [] {
    Whole read;
    for (const fs::path& file : problem_files()) {
      const Result<Problem>& problem = store().at(file);
      if (problem)
        read.problems.push_back(*problem);
      else
        read.errors.push_back(problem.error());
    }
    std::sort(read.problems.begin(), read.problems.end(), comes_first);
    return read;
  }();
  return all;
}

}  // namespace

std::span<const Problem> catalog() { return whole().problems; }
std::span<const Error> catalog_errors() { return whole().errors; }

std::span<const Problem> published_problems() {
  const std::span<const Problem> all = catalog();
  const auto end = std::find_if(all.begin(), all.end(), [](const Problem& problem) {
    return problem.group != published_group;
  });
  return all.first(static_cast<std::size_t>(end - all.begin()));
}

std::vector<std::string> problem_groups() {
  std::vector<std::string> groups;
  for (const Problem& problem : catalog()) {
    if (groups.empty() || groups.back() != problem.group) groups.push_back(problem.group);
  }
  return groups;
}

const Problem* find_problem(std::string_view id) {
  for (const fs::path& file : problem_files()) {
    if (file.stem() != id) continue;
    const Result<Problem>& problem = store().at(file);
    return problem ? &*problem : nullptr;
  }
  return nullptr;
}

Error unknown_problem(std::string_view id) {
  constexpr std::size_t most_shown = 64;
  std::vector<std::string> names;
  for (const fs::path& file : problem_files()) {
    names.push_back(file.stem().string());
    if (names.back() != id) continue;
    const Result<Problem>& problem = store().at(file);
    return problem ? Error{"problem '" + names.back() + "' can be read"} : problem.error();
  }
  const std::string meant = id.size() > most_shown ? "" : nearest(id, names);
  return {"unknown problem '" + one_line(id, most_shown) + "'" +
          (meant.empty() ? "" : " (did you mean '" + meant + "'?)") +
          ": `rekernel list` names them all"};
}

}  // namespace rekernel

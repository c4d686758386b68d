#include "harness/problems/catalog.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <tuple>

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

/// Letters that must be changed, added or left out to make one word of another.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

bool is_alike(std::string_view name, std::string_view id) {
  constexpr std::size_t longest = 64, shortest_part = 4, most_errors = 2;
  if (id.size() > longest) return false;
  const bool is_part = id.size() >= shortest_part && name.find(id) != std::string_view::npos;
  return is_part || distance(name, id) <= most_errors;
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
  std::string alike;
  for (const fs::path& file : problem_files()) {
    const std::string name = file.stem().string();
    if (name == id) {
      const Result<Problem>& problem = store().at(file);
      return problem ? Error{"problem '" + name + "' can be read"} : problem.error();
    }
    if (is_alike(name, id)) alike += (alike.empty() ? "" : ", ") + name;
  }
  return {"unknown problem '" + one_line(id, most_shown) + "'" +
          (alike.empty() ? "" : " (did you mean " + alike + "?)") +
          ": `rekernel list` names them all"};
}

}  // namespace rekernel

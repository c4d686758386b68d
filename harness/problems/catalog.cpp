#include "harness/problems/catalog.h"

#include <algorithm>
#include <boost/json.hpp>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>

#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/judging_sources.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/problems/problem_file.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t max_file_bytes = 4u << 20;

fs::path problems_below(const fs::path& project) { return project / "ops" / "problems"; }

/// Of two files of one id, that in the first folder counts.
std::vector<fs::path>& problems_folders() {
  static std::vector<fs::path> folders = {problems_below(REKERNEL_SOURCE_DIR)};
  return folders;
}

std::vector<fs::path> problem_files_below(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (const auto& group : fs::directory_iterator(folder, failure)) {
    if (!group.is_directory()) continue;
    for (const auto& file : fs::directory_iterator(group.path(), failure)) {
      if (file.path().extension() == ".json") found.push_back(file.path());
    }
  }
  return found;
}

/// The files of all problems.
const std::vector<fs::path>& problem_files() {
  static const std::vector<fs::path> files = [] {
    std::vector<fs::path> found;
    std::set<std::string> known;
    for (const fs::path& folder : problems_folders()) {
      std::vector<fs::path> here = problem_files_below(folder);
      std::erase_if(here, [&](const fs::path& file) { return known.contains(file.stem()); });
      for (const fs::path& file : here) known.insert(file.stem());
      found.insert(found.end(), here.begin(), here.end());
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

/// Problems that no file of the project says. They stay: others hold on to them.
class AddedProblems {
 public:
  const Problem* find(std::string_view id) {
    const std::lock_guard lock(mutex_);
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  }

  const Problem* add(Problem problem) {
    const std::lock_guard lock(mutex_);
    const Problem& kept = problems_.emplace_back(std::move(problem));
    by_id_[kept.id] = &kept;
    return &kept;
  }

  std::vector<const Problem*> all() {
    const std::lock_guard lock(mutex_);
    std::vector<const Problem*> problems;
    for (const auto& [id, problem] : by_id_) problems.push_back(problem);
    return problems;
  }

 private:
  std::mutex mutex_;
  std::deque<Problem> problems_;
  std::map<std::string, const Problem*, std::less<>> by_id_;
};

AddedProblems& added_problems() {
  static AddedProblems one;
  return one;
}

const Problem* find_in_project(std::string_view id) {
  for (const fs::path& file : problem_files()) {
    if (file.stem() != id) continue;
    const Result<Problem>& problem = store().at(file);
    return problem ? &*problem : nullptr;
  }
  return nullptr;
}

/// What a file calls its problem: the file's own name need not say it.
std::string id_in(std::string_view text, const fs::path& file) {
  const Result<boost::json::value> json = parse_json(text, file.string());
  const boost::json::object* object = json ? json->if_object() : nullptr;
  const boost::json::value* id = object ? object->if_contains("id") : nullptr;
  return id && id->is_string() ? std::string(id->get_string()) : file.stem().string();
}

Result<const Problem*> add_problem(const fs::path& file) {
  if (file.extension() == ".py") {
    return Error{file.string() + ": a Python program: `rekernel problem import " + file.string() +
                 "` makes a problem's file of it"};
  }
  const Result<std::string> text = read_file(file, max_file_bytes);
  return text ? add_problem_text(*text, file) : text.error();
}

}  // namespace

Result<const Problem*> add_problem_text(const std::string& text, const fs::path& file) {
  const std::string id = id_in(text, file);
  Result<Problem> problem = parse_problem(text, file.string(), id, std::string(strangers_group));
  if (!problem) return problem.error();
  const Problem* known = find_problem(id);
  if (known && problem_digest(known->text) == problem_digest(text)) return known;
  if (known) {
    return Error{file.string() + ": id: '" + id + "' is another problem of " +
                 (is_strangers(*known) ? std::string("a file that was named before")
                                       : problems_folders().front().string()) +
                 ": expected an id of its own"};
  }
  return added_problems().add(*std::move(problem));
}

namespace {

Result<std::vector<fs::path>> files_of(const fs::path& file_or_folder) {
  std::error_code failure;
  if (!fs::is_directory(file_or_folder, failure)) return std::vector<fs::path>{file_or_folder};
  std::vector<fs::path> files;
  for (fs::directory_iterator it(file_or_folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    if (it->path().extension() == ".json") files.push_back(it->path());
  }
  if (failure) return Error{file_or_folder.string() + ": cannot be read: " + failure.message()};
  if (files.empty()) {
    return Error{file_or_folder.string() + ": expected problems' files (.json) in it"};
  }
  std::sort(files.begin(), files.end());
  return files;
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
    for (const Problem* problem : added_problems().all()) read.problems.push_back(*problem);
    std::sort(read.problems.begin(), read.problems.end(), comes_first);
    return read;
  }();
  return all;
}

}  // namespace

void read_problems_of(const fs::path& project) {
  std::error_code ignored;
  if (fs::is_directory(problems_below(project), ignored)) {
    problems_folders() = {problems_below(project)};
  }
}

void prefer_problems_of_program() {
  const fs::path own = problems_below(REKERNEL_SOURCE_DIR);
  if (problems_folders().front() != own) problems_folders().insert(problems_folders().begin(), own);
}

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
  const Problem* added = added_problems().find(id);
  return added ? added : find_in_project(id);
}

bool is_strangers(const Problem& problem) { return problem.group == strangers_group; }

Result<std::vector<const Problem*>> add_problems(const fs::path& file_or_folder) {
  const Result<std::vector<fs::path>> files = files_of(file_or_folder);
  if (!files) return files.error();
  std::vector<const Problem*> problems;
  for (const fs::path& file : *files) {
    const Result<const Problem*> problem = add_problem(file);
    if (!problem) return problem.error();
    problems.push_back(*problem);
  }
  return problems;
}

std::string problem_fields(std::string_view id) {
  const Problem* problem = find_problem(id);
  return problem ? joined_fields({problem->id, problem->group, problem->text}) : "";
}

Result<Ok> adopt_problem(std::string_view fields, const std::string& where) {
  const std::optional<Fields> parts = split_fields(fields);
  if (!parts || parts->size() != 3) return Error{where + ": the problem did not arrive in whole"};
  const auto& [id, group, text] = std::tie((*parts)[0], (*parts)[1], (*parts)[2]);
  const Problem* known = find_problem(id);
  if (known && known->text == text && known->group == group) return Ok{};
  Result<Problem> problem = parse_problem(text, where + ": problem " + id, id, group);
  if (!problem) return problem.error();
  added_problems().add(*std::move(problem));
  return Ok{};
}

Result<NamedByContent> named_by_content(boost::json::object definition) {
  constexpr std::size_t hash_digits = 10;
  constexpr std::size_t longest_id = 64;
  const boost::json::value* name = definition.if_contains("id");
  if (!name || !name->is_string() || !is_identifier(name->get_string())) {
    return Error{"id: expected an identifier (letters, digits and _, at most 64)"};
  }
  const std::string hash = sha256_hex(boost::json::serialize(definition)).substr(0, hash_digits);
  const std::string given(name->get_string());
  const std::string id = given.substr(0, longest_id - hash_digits - 1) + "_" + hash;
  definition["id"] = id;
  return NamedByContent{id, boost::json::serialize(definition)};
}

std::string digest_of_problem(std::string_view id) {
  constexpr std::size_t digits = 16;
  const Problem* problem = find_problem(id);
  return problem ? problem_digest(problem->text) : std::string(digits, '0');
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

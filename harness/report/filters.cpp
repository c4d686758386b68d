#include "harness/report/filters.h"

#include <algorithm>

#include "harness/base/text.h"
#include "harness/candidate/known_problem.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

using Words = std::vector<std::string>;

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool takes_word(const Words& words, const std::string& word) {
  return words.empty() || has(words, word);
}

Words words_of(const ParsedArguments& parsed, const char* option) {
  return parsed.has(option) ? parsed.get<Words>(option) : Words{};
}

Words badge_names() {
  Words names;
  for (const BadgeDescription& one : badge_table) names.emplace_back(one.name);
  return names;
}

Result<Ok> read_badges(const Words& names, Badges& badges) {
  for (const std::string& name : names) {
    const auto* const found =
        std::find_if(badge_table.begin(), badge_table.end(),
                     [&](const BadgeDescription& one) { return one.name == name; });
    if (found == badge_table.end()) {
      return Error{"--badge " + name + ": expected one of " + joined(badge_names())};
    }
    badges.set(found->badge);
  }
  return Ok{};
}

Result<Ok> read_statuses(const Words& names, std::vector<Status>& statuses) {
  for (const std::string& name : names) {
    const std::optional<Status> status = status_from_string(name);
    if (!status) {
      Words known;
      for (int i = 0; i <= static_cast<int>(Status::forged_time); ++i) {
        known.emplace_back(to_string(static_cast<Status>(i)));
      }
      return Error{"--status " + name + ": expected one of " + joined(known)};
    }
    statuses.push_back(*status);
  }
  return Ok{};
}

std::string folder_of(const std::filesystem::path& path) {
  return path.parent_path().filename().string();
}

Result<Ok> check_devices(const Filters& filters, const PlacedBenches& benches) {
  for (const std::string& device : filters.devices) {
    const bool found = std::any_of(benches.begin(), benches.end(), [&](const auto& one) {
      return folder_of(one.first) == device || one.second.device_name == device;
    });
    if (found) continue;
    Words folders;
    for (const auto& [path, bench] : benches) folders.push_back(folder_of(path));
    return Error{"--on " + device + ": nothing is recorded of it; expected one of " +
                 joined(folders)};
  }
  return Ok{};
}

}  // namespace

bool Filters::take_all() const {
  return problems.empty() && groups.empty() && kernels.empty() && !name_results();
}

bool Filters::name_results() const {
  return !devices.empty() || !badges.empty() || !statuses.empty();
}

bool Filters::take(const Problem& problem) const {
  return takes_word(problems, problem.id) && takes_word(groups, problem.group);
}

bool Filters::take_kernel(const std::string& problem, const std::string& kernel) const {
  return kernels.empty() || has(kernels, kernel) || has(kernels, problem + "/" + kernel);
}

bool Filters::take_outcome(Status status, const Badges& earned) const {
  const bool as_asked =
      statuses.empty() || std::find(statuses.begin(), statuses.end(), status) != statuses.end();
  return as_asked && earned.has_all(badges);
}

bool Filters::take(const BenchRow& row) const {
  const Problem* problem = find_problem(row.problem);
  const bool of_problem = problem ? take(*problem) : problems.empty() && groups.empty();
  return of_problem && take_kernel(row.problem, row.kernel) && take_outcome(row.status, row.badges);
}

void add_kernel_filters(po::options_description& options) {
  const auto words = [] { return po::value<Words>()->composing(); };
  options.add_options()("group", words(), "only problems of this group")(
      "kernel", words(), "only this kernel, as NAME or PROBLEM/NAME")(
      "badge", words(), "only what has this badge; of several, all")(
      "status", words(), "only what has this status: passed, wrong_result, …");
}

void add_filters(po::options_description& options) {
  options.add_options()("problem", po::value<Words>()->composing(),
                        "only this problem; the path of a file: a problem of your own");
  add_kernel_filters(options);
  options.add_options()("on", po::value<Words>()->composing(),
                        "only this device, by its name or its folder in results/ (h200)");
}

Result<Filters> chosen_filters(const ParsedArguments& parsed) {
  Filters filters;
  filters.problems = words_of(parsed, "problem");
  filters.groups = words_of(parsed, "group");
  filters.kernels = words_of(parsed, "kernel");
  filters.devices = words_of(parsed, "on");
  for (std::string& id : filters.problems) {
    if (id.ends_with(".json")) {  // the file of a problem, which need not be the project's
      const Result<std::vector<const Problem*>> added = add_problems(id);
      if (!added) return Error{"--problem " + added.error().message};
      id = added->front()->id;
    } else if (id.find('/') != std::string::npos) {  // a kernel's name
      const Result<std::filesystem::path> folder = candidate_folder(id);
      if (!folder) return folder.error();
      id = folder->parent_path().filename().string();
      filters.kernels.push_back(id + "/" + folder->filename().string());
    }
    if (const auto known = known_problem(id); !known) return known.error();
  }
  const Words groups = problem_groups();
  for (const std::string& group : filters.groups) {
    if (!has(groups, group)) {
      return Error{"--group " + group + ": expected one of " + joined(groups)};
    }
  }
  if (auto read = read_badges(words_of(parsed, "badge"), filters.badges); !read) {
    return read.error();
  }
  if (auto read = read_statuses(words_of(parsed, "status"), filters.statuses); !read) {
    return read.error();
  }
  return filters;
}

Result<Ok> keep_devices(const Filters& filters, PlacedBenches& benches) {
  if (Result<Ok> good = check_devices(filters, benches); !good) return good;
  if (!filters.devices.empty()) {
    std::erase_if(benches, [&](const auto& one) {
      return !has(filters.devices, folder_of(one.first)) &&
             !has(filters.devices, one.second.device_name);
    });
  }
  const bool any = std::any_of(benches.begin(), benches.end(), [&](const auto& one) {
    return std::any_of(one.second.rows.begin(), one.second.rows.end(),
                       [&](const BenchRow& row) { return filters.take(row); });
  });
  if (!filters.take_all() && !any) return Error{"no recorded result fits these filters"};
  return Ok{};
}

Bench taken_rows(const Filters& filters, const Bench& bench) {
  Bench taken = bench;
  std::erase_if(taken.rows, [&](const BenchRow& row) { return !filters.take(row); });
  return taken;
}

}  // namespace rekernel

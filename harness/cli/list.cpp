#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <iostream>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/root.h"
#include "harness/records/report.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace {

std::string shape_text(const Tensor& tensor) {
  std::string text = tensor.name + "(";
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    text += (axis > 0 ? "," : "") + std::to_string(tensor.shape[axis]);
  }
  return text + ") " + to_string(tensor.dtype);
}

std::vector<std::string> kernels_of(const std::vector<Candidate>& candidates,
                                    const std::string& problem) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) {
    if (candidate.problem == problem) {
      names.push_back(candidate.name + " (" + to_string(candidate.arch) + ")");
    }
  }
  return names;
}

std::string list_line(const std::string& name, const std::vector<std::string>& words) {
  constexpr std::size_t indent = 14;
  const std::string start = "  " + name;
  return wrapped(start + std::string(indent - start.size(), ' ') + joined(words), page_columns,
                 indent) +
         "\n";
}

std::vector<std::string> trajectories(const std::filesystem::path& root) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root / "trajectories", ignored)) {
    if (entry.path().extension() == ".jsonl") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

boost::json::object to_json(const std::vector<const Problem*>& problems,
                            const std::vector<Candidate>& candidates,
                            const std::vector<std::string>& trajectory_names) {
  boost::json::array listed;
  for (const Problem* problem : problems) {
    boost::json::array tensors;
    for (const Tensor& tensor : problem->tensors) {
      tensors.push_back({{"name", tensor.name},
                         {"dtype", to_string(tensor.dtype)},
                         {"role", tensor.role == Role::input ? "input" : "output"},
                         {"shape", boost::json::value_from(tensor.shape)}});
    }
    boost::json::array kernels;
    for (const Candidate& candidate : candidates) {
      if (candidate.problem == problem->id) {
        kernels.push_back({{"name", candidate.name}, {"arch", to_string(candidate.arch)}});
      }
    }
    listed.push_back({{"id", problem->id},
                      {"group", problem->group},
                      {"title", problem->title},
                      {"tensors", std::move(tensors)},
                      {"definition", boost::json::value_from(problem->formula)},
                      {"pytorch", problem->pytorch},
                      {"min_bytes", problem->min_bytes},
                      {"operations", problem->operations},
                      {"references", boost::json::value_from(library_reference_ids(problem->id))},
                      {"pytorch_references", boost::json::value_from(pytorch_ids(*problem))},
                      {"kernels", std::move(kernels)}});
  }
  return {{"problems", std::move(listed)},
          {"trajectories", boost::json::value_from(trajectory_names)}};
}

/// All that is said of one problem.
void print_page(const Problem& problem, const std::vector<Candidate>& candidates) {
  std::vector<std::string> tensors, sizes, stress;
  for (const Tensor& tensor : problem.tensors) tensors.push_back(shape_text(tensor));
  for (const auto& [axis, range] : problem.other_sizes) {
    sizes.push_back(axis + " " + std::to_string(range.first) + " to " +
                    std::to_string(range.second));
  }
  for (const StressCase& one : problem.stress_cases) stress.push_back(one.name);
  std::cout << problem.id << ": " << problem.title << "\n" << list_line("group", {problem.group});
  if (!problem.source.benchmark.empty()) {
    std::cout << list_line(
        "source", {problem.source.benchmark + ", number " + std::to_string(problem.source.number)});
  }
  std::cout << list_line("tensors", tensors);
  for (const std::string& statement : problem.formula) {
    std::cout << list_line(&statement == &problem.formula.front() ? "definition" : "", {statement});
  }
  std::cout << list_line("PyTorch", {problem.pytorch});
  if (!sizes.empty()) std::cout << list_line("other sizes", sizes);
  std::cout << list_line("work",
                         {printed("%.3g", static_cast<double>(problem.operations)) + " operations",
                          printed("%.3g", static_cast<double>(problem.min_bytes)) + " bytes"})
            << list_line("tolerance",
                         {"rms " + printed("%.2g", problem.tolerance.rms_error_over_rms),
                          "largest " + printed("%.2g", problem.tolerance.max_error_over_rms) +
                              " of the truth's rms"})
            << list_line("stress", stress);
  const std::vector<std::string> kernels = kernels_of(candidates, problem.id);
  std::vector<std::string> references = library_reference_ids(problem.id);
  for (std::string& id : pytorch_ids(problem)) references.push_back(std::move(id));
  std::cout << list_line("references", references)
            << list_line("kernels", kernels.empty() ? std::vector<std::string>{"none"} : kernels);
}

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has_all_words(const Problem& problem, const std::vector<std::string>& words) {
  const std::string text = in_lower_case(problem.id + " " + problem.title + " " + problem.group +
                                         " " + problem.pytorch + " " + joined(problem.formula));
  return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    return text.find(in_lower_case(word)) != std::string::npos;
  });
}

Result<std::vector<const Problem*>> listed_problems(const ParsedArguments& parsed,
                                                    const std::vector<std::string>& words) {
  const std::vector<std::string> groups = problem_groups();
  const std::string group = parsed.has("group") ? parsed.get<std::string>("group") : "";
  if (!group.empty() && std::find(groups.begin(), groups.end(), group) == groups.end()) {
    return Error{"--group " + group + ": expected one of " + joined(groups)};
  }
  std::vector<const Problem*> chosen;
  for (const Problem& problem : catalog()) {
    const bool of_group = group.empty() || problem.group == group;
    if (of_group && has_all_words(problem, words)) chosen.push_back(&problem);
  }
  if (chosen.empty()) {
    return words.size() == 1 ? unknown_problem(words.front())
                             : Error{"no problem has all of these words: " + joined(words)};
  }
  return chosen;
}

Table problems_table(const std::vector<const Problem*>& problems,
                     const std::vector<Candidate>& candidates) {
  Table table;
  table.columns = {{.heading = "group", .rank = 1},
                   {.heading = "problem"},
                   {.heading = "what", .wraps = true},
                   {.heading = "GB", .right_aligned = true, .rank = 3},
                   {.heading = "Gop", .right_aligned = true, .rank = 3},
                   {.heading = "headline", .rank = 2},
                   {.heading = "kernels", .right_aligned = true}};
  for (const Problem* problem : problems) {
    const std::vector<std::string> library = headline_reference_ids(problem->id);
    const auto kernels = std::count_if(candidates.begin(), candidates.end(),
                                       [&](const auto& one) { return one.problem == problem->id; });
    table.rows.push_back({problem->group, problem->id, problem->title,
                          printed("%.2f", static_cast<double>(problem->min_bytes) / 1e9),
                          printed("%.1f", static_cast<double>(problem->operations) / 1e9),
                          library.empty() ? pytorch_ids(*problem).front() : library.front(),
                          kernels == 0 ? "–" : std::to_string(kernels)});
  }
  return table;
}

}  // namespace

int list_command(const Arguments& arguments) {
  namespace po = boost::program_options;
  po::options_description options;
  options.add_options()("word", po::value<std::vector<std::string>>(),
                        "a problem, of which all is told; or words that problems must have")(
      "group", po::value<std::string>(), "problems of one group alone")("json", po::bool_switch(),
                                                                        "print everything as JSON");
  add_table_options(options);
  po::positional_options_description positional;
  positional.add("word", -1);
  const ParsedArguments parsed =
      parse_arguments(arguments, "rekernel list [WORD…] [options]",
                      "rekernel list convolution --group kernelbench1", options, positional);
  if (parsed.exit_status) return *parsed.exit_status;

  const std::vector<std::string> words = parsed.has("word")
                                             ? parsed.get<std::vector<std::string>>("word")
                                             : std::vector<std::string>{};
  const std::filesystem::path root = project_root();
  const Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return bad_input(candidates.error());
  const bool all = words.empty() && !parsed.has("group");
  const std::vector<std::string> recorded = all ? trajectories(root) : std::vector<std::string>{};
  const Problem* one = words.size() == 1 ? find_problem(words.front()) : nullptr;
  Result<std::vector<const Problem*>> problems =
      one ? std::vector<const Problem*>{one} : listed_problems(parsed, words);
  if (!problems) return bad_input(problems.error());
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*problems, *candidates, recorded));
    return exit_good;
  }
  const TableFormat format = table_format(parsed);
  if (one && !format.csv) {
    print_page(*one, *candidates);
    return exit_good;
  }
  std::cout << format.shown(problems_table(*problems, *candidates));
  for (const Error& error : catalog_errors()) std::cerr << "rekernel: " << error.message << "\n";
  if (!recorded.empty()) {
    std::cout << format.words("\n" + wrapped("trajectories: " + joined(recorded), page_columns, 2) +
                              "\n");
  }
  return exit_good;
}

}  // namespace rekernel

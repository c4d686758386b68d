#include <algorithm>
#include <boost/json.hpp>
#include <boost/program_options.hpp>
#include <cctype>
#include <iostream>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/recorded.h"
#include "harness/project/root.h"
#include "harness/project/unfinished_searches.h"
#include "harness/records/report.h"
#include "harness/report/filters.h"
#include "harness/report/tensor_json.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

boost::json::object to_json(const std::vector<const Problem*>& problems,
                            const std::vector<Candidate>& candidates,
                            const std::vector<std::string>& trajectory_names) {
  boost::json::array listed;
  for (const Problem* problem : problems) {
    boost::json::array tensors;
    for (const Tensor& tensor : problem->tensors) tensors.push_back(tensor_json(tensor));
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

std::size_t number_of_kernels(const std::vector<Candidate>& candidates,
                              const std::string& problem) {
  return static_cast<std::size_t>(
      std::count_if(candidates.begin(), candidates.end(),
                    [&](const Candidate& one) { return one.problem == problem; }));
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

/// Leaves the kernels whose recorded results the filters take: those of their present source and
/// plan.
Result<Ok> keep_recorded(const std::filesystem::path& root, const Filters& filters,
                         std::vector<Candidate>& candidates) {
  PlacedBenches benches;
  for (const std::filesystem::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_record(root, path);
    if (!bench) return bench.error();
    benches.emplace_back(path, std::move(*bench));
  }
  if (Result<Ok> kept = keep_devices(filters, benches); !kept) return kept;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const std::string sha256 = candidate_sha256(candidate);
    return std::none_of(benches.begin(), benches.end(), [&](const auto& one) {
      const std::vector<BenchRow>& rows = one.second.rows;
      return std::any_of(rows.begin(), rows.end(), [&](const BenchRow& row) {
        return row.problem == candidate.problem && row.sha256 == sha256 && filters.take(row);
      });
    });
  });
  return Ok{};
}

/// Candidates that the filters take, of the project's.
Result<std::vector<Candidate>> listed_candidates(const std::filesystem::path& root,
                                                 const Filters& filters) {
  Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return candidates;
  std::erase_if(*candidates,
                [&](const Candidate& one) { return !filters.take_kernel(one.problem, one.name); });
  if (filters.name_results()) {
    if (Result<Ok> kept = keep_recorded(root, filters, *candidates); !kept) return kept.error();
  }
  return candidates;
}

/// Problems that have all of the words and that the filters take; where those are about kernels,
/// problems that have one of the candidates.
Result<std::vector<const Problem*>> listed_problems(const Filters& filters,
                                                    const std::vector<Candidate>& candidates,
                                                    const std::vector<std::string>& words) {
  const bool of_kernels = filters.name_results() || !filters.kernels.empty();
  std::vector<const Problem*> chosen;
  for (const Problem& problem : catalog()) {
    const bool wanted = !of_kernels || number_of_kernels(candidates, problem.id) > 0;
    if (wanted && filters.take(problem) && has_all_words(problem, words)) {
      chosen.push_back(&problem);
    }
  }
  if (chosen.empty()) {
    if (words.empty()) return Error{"no problem fits these filters"};
    return words.size() == 1 && filters.take_all()
               ? unknown_problem(words.front())
               : Error{"no problem has all of these words and fits the filters: " + joined(words)};
  }
  return chosen;
}

Table problems_table(const std::vector<const Problem*>& problems,
                     const std::vector<Candidate>& candidates) {
  Table table;
  table.columns = {{.heading = "group", .rank = 1},
                   {.heading = "problem"},
                   {.heading = "what", .wraps = true},
                   {.heading = "GB", .right_aligned = true, .rank = 3, .csv = "least_gb"},
                   {.heading = "Gop", .right_aligned = true, .rank = 3, .csv = "gigaoperations"},
                   {.heading = "headline", .rank = 2},
                   {.heading = "kernels", .right_aligned = true, .readers = Readers::people},
                   {.heading = "kernels", .readers = Readers::programs}};
  for (const Problem* problem : problems) {
    const std::vector<std::string> library = headline_reference_ids(problem->id);
    const std::size_t kernels = number_of_kernels(candidates, problem->id);
    table.rows.push_back({problem->group, problem->id, problem->title,
                          printed("%.2f", static_cast<double>(problem->min_bytes) / 1e9),
                          printed("%.1f", static_cast<double>(problem->operations) / 1e9),
                          library.empty() ? pytorch_ids(*problem).front() : library.front(),
                          kernels == 0 ? no_cell : std::to_string(kernels),
                          std::to_string(kernels)});
  }
  return table;
}

Page list_page() {
  Page page;
  page.description =
      "Lists problems with their least work, headline reference and number of kernels, and the "
      "recorded searches. `rekernel show PROBLEM` tells all of one.";
  page.takes({"word", "WORD", "a problem; or words that problems must have", Count::any},
             list_value("WORD", {Names::problem, Names::anything}));
  page.examples = {{"rekernel list convolution --group kernelbench1"}};
  add_filters(page.group("Which of them"));
  page.group("Output").add_options()("json", po::bool_switch(), "print everything as JSON");
  add_table_options(page.group("Output"));
  return page;
}

}  // namespace

int list_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, list_page());
  if (parsed.exit_status) return *parsed.exit_status;

  const std::vector<std::string> words = parsed.has("word")
                                             ? parsed.get<std::vector<std::string>>("word")
                                             : std::vector<std::string>{};
  const std::filesystem::path root = project_root();
  const Result<Filters> filters = chosen_filters(parsed);
  if (!filters) return bad_input(filters.error());
  const Result<std::vector<Candidate>> candidates = listed_candidates(root, *filters);
  if (!candidates) return bad_input(candidates.error());
  const bool all = words.empty() && filters->take_all();
  const std::vector<std::string> recorded = all ? search_names(root) : std::vector<std::string>{};
  const bool page = words.size() == 1 && filters->take_all();
  const Problem* one = page ? find_problem(words.front()) : nullptr;
  Result<std::vector<const Problem*>> problems =
      one ? std::vector<const Problem*>{one} : listed_problems(*filters, *candidates, words);
  if (!problems) return bad_input(problems.error());
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*problems, *candidates, recorded));
    return exit_good;
  }
  const TableFormat format = table_format(parsed);
  std::cout << format.shown(problems_table(*problems, *candidates));
  for (const Error& error : catalog_errors()) std::cerr << "rekernel: " << error.message << "\n";
  if (problems->size() == 1) {
    std::cout << format.words("\nall of it: rekernel show " + problems->front()->id);
  }
  if (!recorded.empty()) {
    std::cout << format.words("\n" + wrapped("trajectories: " + joined(recorded), page_columns, 2) +
                              "\n");
  }
  return exit_good;
}

}  // namespace rekernel

#include <algorithm>
#include <boost/json.hpp>
#include <iostream>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/measuring/references.h"
#include "harness/project/candidates.h"
#include "harness/project/root.h"
#include "harness/records/report.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/problems/catalog.h"

namespace rekernel {

namespace {

std::string shape_text(const Tensor& tensor) {
  std::string text = tensor.name + "(";
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    text += (axis > 0 ? "," : "") + std::to_string(tensor.shape[axis]);
  }
  return text + ")";
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

boost::json::object to_json(const std::vector<Candidate>& candidates,
                            const std::vector<std::string>& trajectory_names) {
  boost::json::array problems;
  for (const Problem& problem : catalog()) {
    boost::json::array tensors;
    for (const Tensor& tensor : problem.tensors) {
      tensors.push_back({{"name", tensor.name},
                         {"dtype", to_string(tensor.dtype)},
                         {"role", tensor.role == Role::input ? "input" : "output"},
                         {"shape", boost::json::value_from(tensor.shape)}});
    }
    boost::json::array kernels;
    for (const Candidate& candidate : candidates) {
      if (candidate.problem == problem.id) {
        kernels.push_back({{"name", candidate.name}, {"arch", to_string(candidate.arch)}});
      }
    }
    problems.push_back({{"id", problem.id},
                        {"title", problem.title},
                        {"tensors", std::move(tensors)},
                        {"min_bytes", problem.min_bytes},
                        {"operations", problem.operations},
                        {"references", boost::json::value_from(library_reference_ids(problem.id))},
                        {"kernels", std::move(kernels)}});
  }
  return {{"problems", std::move(problems)},
          {"trajectories", boost::json::value_from(trajectory_names)}};
}

}  // namespace

int list_command(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description options;
  options.add_options()("json", po::bool_switch(), "print everything as JSON");
  const ParsedArguments parsed =
      parse_arguments(arguments, "rekernel list [options]", "rekernel list", options);
  if (parsed.exit_status) return *parsed.exit_status;

  const std::filesystem::path root = project_root();
  Result<std::vector<Candidate>> candidates = committed_candidates(root);
  if (!candidates) return bad_input(candidates.error());
  const std::vector<std::string> recorded = trajectories(root);
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*candidates, recorded));
    return exit_good;
  }
  for (const Problem& problem : catalog()) {
    std::vector<std::string> tensors;
    for (const Tensor& tensor : problem.tensors) tensors.push_back(shape_text(tensor));
    std::cout << problem.id << ": " << problem.title << "\n"
              << list_line("tensors", tensors)
              << list_line("references", library_reference_ids(problem.id))
              << list_line("kernels", kernels_of(*candidates, problem.id));
  }
  if (!recorded.empty()) {
    std::cout << wrapped("trajectories: " + joined(recorded), page_columns, 2) << "\n";
  }
  return exit_good;
}

}  // namespace rekernel

#include "harness/cli/problem.h"

#include "harness/base/files.h"
#include "harness/candidate/known_problem.h"
#include "harness/gpu/identity.h"
#include "harness/problem_import/imported_problem.h"
#include "harness/problem_import/problem_import.h"
#include "harness/problems/catalog.h"

namespace rekernel {

namespace {

constexpr std::size_t max_program_bytes = 1u << 20;

/// KernelBench's, or a Definition of FlashInfer's.
bool is_program(const std::filesystem::path& place) {
  if (place.extension() == ".py") return true;
  if (place.extension() != ".json") return false;
  const Result<std::string> text = read_file(place, max_program_bytes);
  return text && is_flashinfer_definition(*text);
}

Result<std::vector<const Problem*>> imported(const std::filesystem::path& file) {
  Progress progress;
  const Result<std::string> text =
      imported_problem_text(file, [&] { progress.show("importing " + file.string() + " …"); });
  if (!text) return text.error();
  const Result<const Problem*> problem = add_problem_text(*text, file);
  if (!problem) return problem.error();
  return std::vector<const Problem*>{*problem};
}

}  // namespace

Result<std::vector<const Problem*>> chosen_problems(const ParsedArguments& parsed,
                                                    const std::string& command) {
  std::vector<const Problem*> problems;
  if (parsed.flag("all")) {
    if (const auto errors = catalog_errors(); !errors.empty()) return errors.front();
    for (const Problem& problem : catalog()) problems.push_back(&problem);
    return problems;
  }
  if (!parsed.has("problem")) return Error{command + ": expected problems, or --all"};
  for (const std::string& id : parsed.get<std::vector<std::string>>("problem")) {
    const Problem* problem = find_problem(id);
    if (!problem) return unknown_problem(id);
    problems.push_back(problem);
  }
  return problems;
}

void add_problem_option(boost::program_options::options_description& options) {
  options.add_options()(
      "problem", list_value("FILE", {Names::file, Names::folder}),
      "a problem of your own: its file, a folder of such files, or a program (KernelBench's "
      "Python, a Definition of FlashInfer's)");
}

Result<std::vector<const Problem*>> take_problems(const ParsedArguments& parsed) {
  std::vector<const Problem*> taken;
  if (!parsed.has("problem")) return taken;
  for (const std::string& place : parsed.get<std::vector<std::string>>("problem")) {
    const Result<std::vector<const Problem*>> added =
        is_program(place) ? imported(place) : add_problems(place);
    if (!added) return Error{"--problem " + added.error().message};
    taken.insert(taken.end(), added->begin(), added->end());
  }
  return taken;
}

Result<const Problem*> asked_problem(const ParsedArguments& parsed, const char* key,
                                     const std::vector<const Problem*>& taken) {
  if (parsed.has(key)) return known_problem(parsed.get<std::string>(key));
  if (taken.size() == 1) return taken.front();
  return Error{taken.empty() ? "expected PROBLEM, or --problem FILE"
                             : "--problem names " + std::to_string(taken.size()) +
                                   " problems: expected PROBLEM, one of them"};
}

Result<GpuLock> locked_gpu(int ordinal, Progress& progress) {
  const Result<GpuIdentity> gpu = identify_gpu(ordinal);
  if (!gpu) return gpu.error();
  return GpuLock::acquire(gpu->uuid, std::nullopt,
                          [&](const std::string& holder) { progress.show(holder); });
}

}  // namespace rekernel

#include "harness/problem_import/problem_import.h"

#include <boost/json.hpp>
#include <iostream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/measuring/references.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/labelled.h"
#include "harness/terminal/progress.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

Page problem_import_page() {
  Page page;
  page.description =
      "Makes a problem's file of somebody else's: KernelBench's Python (Model, get_inputs, "
      "get_init_inputs) or a Definition of FlashInfer's. The program is traced by PyTorch on the "
      "CPU, in the sandbox; the definition that comes out is compared with it in float64 before "
      "anything is written. Needs python3 with torch.";
  page.takes({"file", "FILE", "a Python program, or a Definition in JSON", Count::one},
             text_value("FILE", {Names::file}));
  page.examples = {{"rekernel problem import tests/problem_import/programs/scaled_rows.py"}};
  page.group("The problem")
      .add_options()("into", text_value("DIR", {Names::folder})->default_value("."),
                     "folder for ID.json")("id", text_value("ID"),
                                           "its id; after the file by default")(
          "workload", text_value("FILE", {Names::file}),
          "of a Definition: workloads (JSON lines), whose first gives the variable axes, the "
          "numbers and the integers; those of its data set by default")(
          "axis", list_value("NAME=N"), "of a Definition: a variable axis")(
          "as-program", po::bool_switch(),
          "let the program itself give the truth, also where its operators have a definition")(
          "deadline", whole_number(1, 86400, "seconds")->default_value(120),
          "time that tracing may take");
  page.group("Output").add_options()("json", po::bool_switch(), "print what was made as JSON");
  return page;
}

/// What a workload and the command line give a Definition.
Result<Workload> given_workload(const ParsedArguments& parsed) {
  const fs::path file = parsed.get<std::string>("file");
  const Result<std::string> text = read_file(file);
  if (!text) return text.error();
  const bool is_definition = is_flashinfer_definition(*text);
  if (parsed.has("workload") && !is_definition) {
    return Error{"--workload: expected FILE to be a Definition of FlashInfer's"};
  }
  Workload given;
  const fs::path workloads =
      parsed.has("workload") ? fs::path(parsed.get<std::string>("workload")) : workloads_of(file);
  if (is_definition && !workloads.empty()) {
    auto found = workload_for(*text, file, workloads);
    if (!found) return found.error();
    given = *std::move(found);
  }
  if (!parsed.has("axis")) return given;
  for (const std::string& word : parsed.get<std::vector<std::string>>("axis")) {
    const std::size_t sign = word.find('=');
    const std::string digits = sign == std::string::npos ? "" : word.substr(sign + 1);
    constexpr std::size_t most_digits = 12;
    if (digits.empty() || digits.size() > most_digits || digits == "0" ||
        digits.find_first_not_of("0123456789") != std::string::npos) {
      return Error{"--axis " + word + ": expected NAME=N with a whole number from 1 up"};
    }
    given.axes[word.substr(0, sign)] = std::stoll(digits);
  }
  return given;
}

std::string agreement_text(const ImportedProblem& made) {
  std::vector<std::string> words;
  for (const Agreement& one : made.agreements) words.push_back(to_text(one));
  return "agrees with the program in float64 at " + made.small + " (" + joined(words) + "; torch " +
         made.torch + ")";
}

/// A line each; the first has the name.
std::string listed(const std::string& name, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += labelled(text.empty() ? name : "", line);
  return text;
}

void print(const ImportedProblem& made, const fs::path& path) {
  std::cout << path.string() << "\n";
  if (made.problem.program) {
    std::cout << labelled("truth", "the program itself, in float64: " + made.why_program);
  } else {
    std::cout << listed("definition", made.problem.formula);
  }
  std::cout << listed("inputs", made.notes);
  if (!made.problem.program) std::cout << labelled("check", agreement_text(made));
  std::cout << labelled("next", "rekernel problem check " + path.string() + "; rekernel new NAME " +
                                    "--into . --problem " + path.string());
}

json::object to_json(const ImportedProblem& made, const fs::path& path) {
  json::array agreements;
  for (const Agreement& one : made.agreements) agreements.push_back(to_json(one));
  return {{"file", path.string()},
          {"id", made.problem.id},
          {"definition", made.problem.program ? json::array()
                                              : json::value_from(made.problem.formula).as_array()},
          {"truth", made.problem.program ? "the program: " + made.why_program : "the definition"},
          {"notes", json::value_from(made.notes)},
          {"checked_at", made.small},
          {"outputs", std::move(agreements)},
          {"torch", made.torch}};
}

}  // namespace

int problem_import_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, problem_import_page());
  if (parsed.exit_status) return *parsed.exit_status;
  ImportRequest request;
  request.file = parsed.get<std::string>("file");
  request.id = parsed.has("id") ? parsed.get<std::string>("id") : id_after(request.file);
  request.deadline = std::chrono::seconds(parsed.get<int>("deadline"));
  request.as_program = parsed.flag("as-program");
  const fs::path folder = parsed.get<std::string>("into");
  const fs::path path = folder / (request.id + ".json");
  std::error_code failure;
  if (!fs::is_directory(folder, failure)) {
    return bad_input({"--into " + folder.string() + ": no such folder"});
  }
  if (fs::exists(fs::symlink_status(path, failure))) {
    return bad_input({path.string() + " exists already; choose another --id or --into"});
  }
  if (!fs::is_regular_file(request.file, failure)) {
    return bad_input({request.file.string() + ": no such file"});
  }
  auto given = given_workload(parsed);
  if (!given) return bad_input(given.error());
  request.workload = *std::move(given);
  if (!pytorch_is_installed()) return bad_input({"python3 here cannot import torch"});
  Progress progress;
  progress.show("tracing " + request.file.string() + " …");
  const Result<ImportedProblem> made = import_problem(request);
  progress.show("");
  if (!made) return bad_input(made.error());
  if (auto written = write_file_atomically(path, made->problem.text); !written) {
    return bad_input(written.error());
  }
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*made, path));
  } else {
    print(*made, path);
  }
  return exit_good;
}

}  // namespace rekernel

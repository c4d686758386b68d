#include <algorithm>
#include <boost/json.hpp>
#include <iostream>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/dataset/atif.h"
#include "harness/dataset/dataset.h"
#include "harness/dataset/licenses.h"
#include "harness/project/root.h"
#include "harness/project/unfinished_searches.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "replay/playback/replayer.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

/// The recorded searches but those that are left out; one that is not there is an error.
Result<std::vector<fs::path>> chosen_trajectories(const fs::path& root,
                                                  const std::vector<std::string>& left_out) {
  std::vector<std::string> unfinished;
  std::vector<fs::path> paths = finished_trajectories(root, unfinished);
  for (const std::string& name : unfinished) {
    std::cerr << "left out: " << name << ", a search that has not ended\n";
  }
  for (const std::string& name : left_out) {
    const auto found = std::find_if(paths.begin(), paths.end(), [&](const fs::path& path) {
      return path.stem().string() == name;
    });
    if (found == paths.end()) return Error{"--leave-out " + name + ": there is no such search"};
    paths.erase(found);
  }
  return paths;
}

void print_made(const MakeUp& made_of, const fs::path& folder) {
  std::map<std::string, std::int64_t> by_config;
  const boost::json::object json = made_of.json();
  for (const boost::json::value& one : json.at("rows").as_array()) {
    by_config[std::string(one.at("config").as_string())] += one.at("rows").as_int64();
  }
  for (const auto& [config, rows] : by_config) {
    std::cout << config << std::string(13 - config.size(), ' ')
              << counted(static_cast<std::size_t>(rows), "row") << "\n";
  }
  std::cout << fs::absolute(folder / "README.md").lexically_normal().string() << "\n";
}

Page dataset_page() {
  Page page;
  page.description =
      "Writes the recorded searches, kernels, fixtures and mutants as a data set: tables in "
      "Parquet, with a card and a schema.";
  page.takes({"directory", "DIR", "a new or an empty folder"},
             text_value("DIR", {Names::folder, Names::anything}));
  page.examples = {{"rekernel dataset ./rekernel-dataset"}};
  page.group("Which of them")
      .add_options()("leave-out", list_value("SEARCH", {Names::search})->composing(),
                     "a search whose rows are left out");
  page.group("Output").add_options()("license", text_value("SPDX")->default_value("Apache-2.0"),
                                     "of all rows but imported ones, as SPDX calls it")(
      "json", po::bool_switch(), "print what the data set is made of as JSON");
  return page;
}

}  // namespace

int dataset_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, dataset_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const fs::path folder = parsed.get<std::string>("directory");
  if (Result<Ok> good = check_dataset_folder(folder); !good) return bad_input(good.error());

  DatasetSources sources;
  sources.root = project_root();
  sources.license = parsed.get<std::string>("license");
  const Result<std::vector<fs::path>> trajectories = chosen_trajectories(
      sources.root, parsed.has("leave-out") ? parsed.get<std::vector<std::string>>("leave-out")
                                            : std::vector<std::string>());
  if (!trajectories) return bad_input(trajectories.error());
  sources.trajectories = *trajectories;
  Progress progress;
  sources.progress = [&](std::size_t done, std::size_t total, const std::string& what) {
    progress.step(done, total, what);
  };
  const Result<MakeUp> made = make_dataset(sources, folder);
  progress.show("");
  if (!made) return bad_input(made.error());
  if (parsed.flag("json")) {
    std::cout << pretty_json(made->json());
  } else {
    print_made(*made, folder);
  }
  return exit_good;
}

namespace {

Page dataset_atif_page() {
  Page page;
  page.description = "Prints a search as a trajectory of agents in the format ATIF, a line each.";
  page.takes({"search", "SEARCH", "a search's name, or its file"},
             text_value("SEARCH", {Names::search, Names::file}));
  page.examples = {{"rekernel dataset atif softmax"}};
  return page;
}

}  // namespace

int dataset_atif_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, dataset_atif_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const fs::path path = trajectory_path(project_root(), parsed.get<std::string>("search"));
  const auto write = [](std::string_view text) { return bool(std::cout << text); };
  const Result<std::size_t> steps = write_atif(path, write);
  return steps ? exit_good : bad_input(steps.error());
}

}  // namespace rekernel

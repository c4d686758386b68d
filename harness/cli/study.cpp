#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>

#include "harness/base/json.h"
#include "harness/cli/command.h"
#include "harness/cli/search_options.h"
#include "harness/process/isolate.h"
#include "harness/process/tool.h"
#include "harness/project/root.h"
#include "harness/records/report.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/tables.h"
#include "replay/report/status.h"
#include "replay/report/study_results.h"
#include "replay/search/study.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

/// One of the searches, started again by this program: as far as it goes by itself.
struct Advance {
  int status = exit_good;
  std::string words;  ///< the last line that it said on standard error
};

Result<Advance> advance(const ParsedArguments& parsed, const Study& study,
                        const std::string& problem) {
  constexpr std::chrono::hours longest{24 * 30};
  const std::string name = study.search_name(problem);
  ToolCommand command;
  command.arguments = {own_executable(), "search", name};
  if (fs::exists(trajectory_path(project_root(), name))) {
    command.arguments.emplace_back("--resume");
  } else {
    command.arguments.insert(command.arguments.end(), {"--study", parsed.get<std::string>("file")});
  }
  command.arguments.insert(command.arguments.end(), {"--gpus", parsed.get<std::string>("gpus")});
  if (parsed.flag("as-is")) command.arguments.emplace_back("--as-is");
  command.deadline = longest;
  const Result<ToolOutcome> outcome = run_tool(command);
  if (!outcome) return outcome.error();
  return Advance{outcome->exit_status.value_or(exit_bad_input), outcome->last_words};
}

/// A search of the study, as its file tells; nothing of one that has not begun.
Result<std::optional<SearchStatus>> status_of(const Study& study, const std::string& problem) {
  const fs::path path = trajectory_path(project_root(), study.search_name(problem));
  if (!fs::exists(path)) return std::optional<SearchStatus>();
  Result<SearchStatus> status = search_status(path);
  if (!status) return status.error();
  return std::optional<SearchStatus>(std::move(*status));
}

std::string state_of(const std::optional<SearchStatus>& status) {
  if (!status) return "not begun";
  const std::string text = state_text(*status);
  return text.substr(0, text.find(';'));
}

struct StudyState {
  Table table;
  std::vector<StudiedSearch> searches;  ///< that have begun
};

Result<StudyState> state_of(const Study& study) {
  StudyState state;
  state.table.columns = {{"search"},       {"profiles"},      {"candidates", true},
                         {"passed", true}, {"best ms", true}, {"found in"},
                         {"state"}};
  for (const std::string& problem : study.problems) {
    const auto status = status_of(study, problem);
    if (!status) return status.error();
    StudiedSearch search;
    if (*status) {
      search = studied((*status)->search, study.is_profiled(problem));
      state.searches.push_back(search);
    }
    state.table.rows.push_back({study.search_name(problem), study.is_profiled(problem) ? "yes" : "",
                                std::to_string(search.candidates), std::to_string(search.correct),
                                search.best ? milliseconds(search.best->time_ns) : "–",
                                search.best ? "round " + std::to_string(search.best->round) : "–",
                                state_of(*status)});
  }
  return state;
}

int print_state(const ParsedArguments& parsed, const Study& study) {
  const Result<StudyState> state = state_of(study);
  if (!state) return bad_input(state.error());
  if (!parsed.flag("json")) {
    std::cout << table_format(parsed).shown(state->table);
  } else if (state->searches.empty()) {
    std::cout << pretty_json(boost::json::object{{"searches", boost::json::array()}});
  } else {
    std::cout << pretty_json(to_json(state->searches));
  }
  return exit_good;
}

/// Each in its turn. One that cannot go on does not keep the others from it.
int advance_all(const ParsedArguments& parsed, const Study& study) {
  Progress progress;
  int worst = exit_good;
  for (std::size_t i = 0; i < study.problems.size(); ++i) {
    const std::string name = study.search_name(study.problems[i]);
    progress.show("[" + std::to_string(i + 1) + "/" + std::to_string(study.problems.size()) + "] " +
                  name + " …");
    const Result<Advance> one = advance(parsed, study, study.problems[i]);
    if (!one) return bad_input(one.error());
    if (one->status != exit_good && one->status != exit_waiting) {
      progress.show("");
      bad_input({name + ": " + one->words});
      worst = exit_bad_input;
    } else if (one->status == exit_waiting && worst == exit_good) {
      worst = exit_waiting;
    }
  }
  return worst;
}

Page study_page() {
  Page page;
  page.description =
      "Goes on with all searches of a study: one for each problem of a list, with the same "
      "settings, fixed before anything is tried. Each search goes as far as it can by itself; "
      "then it waits for replies or for a GPU, and the next one has its turn. "
      "trajectories/ten/STUDY.md describes the study that the report shows.";
  page.takes({"file", "FILE", "the study", Count::one}, text_value("FILE", {Names::file}));
  page.examples = {
      {"rekernel study trajectories/ten/study.json", "Every prompt waits for its reply (status 3)"},
      {"rekernel study trajectories/ten/study.json --status"}};
  page.group("Going on")
      .add_options()("status", boost::program_options::bool_switch(),
                     "print where each search stands, no more")(
          "gpus", text_value("LIST")->default_value("all"), "GPUs to evaluate on: all, or 0,2")(
          "as-is", boost::program_options::bool_switch(),
          "take unusable replies as failed candidates");
  page.group("Output").add_options()("json", boost::program_options::bool_switch(),
                                     "print the results so far as JSON");
  add_table_options(page.group("Output"));
  page.statuses[3] = "replies or a GPU are missing: the same command goes on once they are there";
  return page;
}

}  // namespace

int study_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, study_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const Result<Study> study = load_study(parsed.get<std::string>("file"));
  if (!study) return bad_input(study.error());
  if (parsed.flag("status")) return print_state(parsed, *study);
  if (const Result<fs::path> own = own_project(); !own) return bad_input(own.error());
  const int status = advance_all(parsed, *study);
  const int printed = print_state(parsed, *study);
  return printed == exit_good ? status : printed;
}

}  // namespace rekernel

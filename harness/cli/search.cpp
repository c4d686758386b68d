#include <boost/json.hpp>
#include <chrono>
#include <iostream>

#include "harness/cli/command.h"
#include "harness/cli/references.h"
#include "ops/catalog.h"
#include "replay/device_evaluator.h"
#include "replay/model_files.h"
#include "replay/model_openai.h"
#include "replay/model_recorded.h"
#include "replay/replay_report.h"
#include "replay/search.h"
#include "replay/search_file.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

/// Neither good nor bad: replies or a GPU are missing, and the same command goes on.
constexpr int exit_waiting = 3;

template <class Number>
void take_number(const ParsedArguments& parsed, const char* name, Number& value) {
  if (parsed.has(name)) value = static_cast<Number>(parsed.get<std::int64_t>(name));
}

std::vector<std::string> list_of(const ParsedArguments& parsed, const char* name) {
  return parsed.has(name) ? parsed.get<std::vector<std::string>>(name) : std::vector<std::string>{};
}

void take_models(const ParsedArguments& parsed, Settings& settings) {
  const std::vector<std::string> names = list_of(parsed, "model");
  if (!names.empty()) settings.models.clear();
  for (const std::string& name : names) settings.models.push_back({name, "", ""});
  const bool openai = parsed.get<std::string>("replies") == "openai";
  if (settings.models.empty()) settings.models.push_back({"chat", "", ""});
  for (ModelSettings& model : settings.models) {
    if (!openai) continue;
    if (model.base_url.empty()) model.base_url = parsed.get<std::string>("base-url");
    if (model.key_variable.empty()) model.key_variable = parsed.get<std::string>("key-variable");
  }
}

/// The settings file, where one is given, with what the command line says on top.
Result<SearchFile> wanted_search(const ParsedArguments& parsed) {
  SearchFile file;
  if (parsed.has("settings")) {
    Result<SearchFile> loaded = load_search_file(parsed.get<std::string>("settings"));
    if (!loaded) return loaded.error();
    file = std::move(*loaded);
  }
  if (parsed.has("problem")) file.problem = parsed.get<std::string>("problem");
  if (parsed.has("notes")) file.notes = parsed.get<std::string>("notes");
  if (file.replies.empty()) file.replies = parsed.get<std::string>("replies");
  Settings& settings = file.settings;
  take_number(parsed, "rounds", settings.rounds);
  take_number(parsed, "ideas", settings.ideas);
  take_number(parsed, "branches", settings.branches);
  take_number(parsed, "survivors", settings.survivors);
  take_number(parsed, "bank", settings.bank);
  take_number(parsed, "token-budget", settings.token_budget);
  take_number(parsed, "prompt-tokens", settings.prompt_tokens);
  take_number(parsed, "reply-tokens", settings.reply_tokens);
  take_number(parsed, "deadline", settings.deadline_minutes);
  take_models(parsed, settings);
  for (const std::string& folder : list_of(parsed, "seed")) file.seeds.push_back(folder);
  if (const auto ids = list_of(parsed, "reference"); !ids.empty()) settings.references = ids;
  if (settings.references.empty() && find_problem(file.problem)) {
    settings.references = {library_reference_ids(file.problem).front()};
  }
  if (parsed.has("target")) {
    file.device = known_device(parsed.get<std::string>("target"));
    if (!file.device) return Error{"--target: expected h200 or l40s; other GPUs need --settings"};
  }
  return file;
}

/// The header that the trajectory has, if it has any yet.
Result<std::optional<Header>> recorded_header(Trajectory& trajectory) {
  const Result<const boost::json::object*> first = trajectory.peek();
  if (!first) return first.error();
  if (!*first) return std::optional<Header>();
  Result<Header> header = header_from_json(**first, trajectory.path().string() + ": line 1");
  if (!header) return header.error();
  return std::optional<Header>(std::move(*header));
}

Result<Header> choose_header(const ParsedArguments& parsed, Trajectory& trajectory) {
  Result<std::optional<Header>> recorded = recorded_header(trajectory);
  if (!recorded) return recorded.error();
  const bool resume = parsed.flag("resume") || parsed.has("continue");
  if (resume && *recorded) return std::move(**recorded);
  Result<SearchFile> wanted = wanted_search(parsed);
  if (!wanted) return wanted.error();
  if (wanted->problem.empty()) {
    return Error{*recorded ? trajectory.path().string() +
                                 " exists; --resume goes on with its recorded settings"
                           : "search: expected --problem or --settings"};
  }
  Result<Header> header =
      new_header(trajectory.path().stem().string(), *wanted, project_root(), toolchain_versions());
  if (!header || !*recorded) return header;
  if (const auto difference = first_difference(**recorded, *header)) {
    return Error{trajectory.path().string() + " exists and differs in " + *difference +
                 "; --resume goes on with its recorded settings"};
  }
  return std::move(**recorded);
}

Result<std::unique_ptr<Model>> make_model(const ParsedArguments& parsed, const Header& header,
                                          const fs::path& trajectory) {
  const std::string& replies = parsed.get<std::string>("replies");
  if (replies == "files") {
    fs::path folder = trajectory;
    folder.replace_extension(".exchange");
    if (parsed.has("exchange")) folder = parsed.get<std::string>("exchange");
    return std::unique_ptr<Model>(std::make_unique<FilesModel>(folder));
  }
  if (replies == "openai") {
    OpenAiOptions options;
    options.reply_tokens = header.settings.reply_tokens;
    options.concurrency = static_cast<int>(parsed.get<std::int64_t>("concurrency"));
    if (options.concurrency < 1 || options.concurrency > 256) {
      return Error{"--concurrency: expected 1 to 256"};
    }
    auto model = OpenAiModel::make(header.settings.models, options);
    if (!model) return model.error();
    return std::unique_ptr<Model>(std::move(*model));
  }
  if (replies == "recorded") {
    if (!parsed.has("from")) return Error{"--replies recorded needs --from TRAJECTORY"};
    auto model =
        RecordedModel::load(trajectory_path(project_root(), parsed.get<std::string>("from")));
    if (!model) return model.error();
    return std::unique_ptr<Model>(std::move(*model));
  }
  return Error{"--replies " + replies + ": expected files, openai or recorded"};
}

std::string toolchain_text() {
  std::string text;
  for (const auto& [component, version] : toolchain_versions()) {
    if (component == "PyTorch") continue;
    text += (text.empty() ? "" : ", ") + component + " " + version;
  }
  return text;
}

DeviceEvaluatorOptions evaluator_options(const Header& header) {
  DeviceEvaluatorOptions options;
  options.evaluate.references = header.settings.references;
  options.target = header.device.target;
  options.toolchain = toolchain_text();
  options.device_count = device_count;
  return options;
}

std::function<bool()> deadline_of(const Settings& settings) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::minutes(settings.deadline_minutes);
  return [end, any = settings.deadline_minutes > 0] {
    return any && std::chrono::steady_clock::now() >= end;
  };
}

std::function<Result<Continuation>(const Settings&)> go_on_with(const ParsedArguments& parsed) {
  if (!parsed.has("continue")) return {};
  return [path = parsed.get<std::string>("continue")](const Settings& settings) {
    return load_continuation(path, settings);
  };
}

int report_end(const ParsedArguments& parsed, const ReplayedSearch& search, const SearchEnd& end) {
  if (parsed.flag("json")) {
    std::cout << pretty_json(replay_json(search));
  } else if (!search.rounds.empty()) {
    std::cout << to_text(round_table(search)) << "\n" << metrics_text(search);
  }
  if (!end.interruption) {
    std::cerr << "the search is over: " << end.reason << "\n";
    return exit_good;
  }
  if (end.interruption->kind == Interruption::Kind::waiting) {
    std::cerr << end.interruption->message << "\n";
    return exit_waiting;
  }
  bad_input({end.interruption->message});
  return end.interruption->kind == Interruption::Kind::mismatch ? exit_verdict_failed
                                                                : exit_bad_input;
}

po::options_description search_options() {
  po::options_description options;
  const auto number = [] { return po::value<std::int64_t>(); };
  const auto text = [] { return po::value<std::string>(); };
  const auto list = [] { return po::value<std::vector<std::string>>()->composing(); };
  options.add_options()("name", text(), "name (trajectories/NAME.jsonl) or path of the trajectory")(
      "problem", text(), "problem id")("settings", text(),
                                       "JSON file with everything below and more")(
      "resume", po::bool_switch(), "go on with the settings that the trajectory holds")(
      "replies", text()->default_value("files"),
      "where replies come from: files, openai, recorded")(
      "exchange", text(), "files: folder for prompts and replies; NAME.exchange by default")(
      "model", list(), "name of a model; several take turns")(
      "base-url", text()->default_value("https://api.openai.com/v1"), "openai: the endpoint")(
      "key-variable", text()->default_value("OPENAI_API_KEY"),
      "openai: environment variable that holds the key")(
      "concurrency", po::value<std::int64_t>()->default_value(4), "openai: requests at once")(
      "from", text(), "recorded: the trajectory whose replies to use")(
      "rounds", number(), "rounds (5)")("ideas", number(), "ideas in a round (2)")(
      "branches", number(), "implementations of an idea (2)")(
      "survivors", number(), "fastest kernels that seed the next round (2)")(
      "bank", number(), "good kernels beside them (2)")(
      "token-budget", number(), "stop before this many tokens; 0: none")("prompt-tokens", number(),
                                                                         "longest prompt (48000)")(
      "reply-tokens", number(), "openai: longest reply; 0: the endpoint's own limit")(
      "deadline", number(), "minutes after which no new request is made; 0: none")(
      "continue", text(),
      "go on behind the stop with this JSON file: rounds, round_plans, token_budget, notes")(
      "stop", po::bool_switch(), "make no new request: end the search behind what was asked")(
      "seed", list(), "folder of a kernel to start from; several")(
      "reference", list(), "reference to time beside candidates; the headline by default")(
      "target", text(), "GPU that the prompts speak of: h200 (default) or l40s")(
      "notes", text(), "free text for the header")("json", po::bool_switch(),
                                                   "print the rounds as JSON");
  return options;
}

}  // namespace

int search_command(const std::vector<std::string>& arguments) {
  po::positional_options_description positional;
  positional.add("name", 1);
  const ParsedArguments parsed = parse_arguments(
      arguments, "rekernel search NAME [options]",
      "rekernel search my_softmax --problem softmax --rounds 3 --replies files\n\n"
      "Exit status 3: replies or a GPU are missing; the same command goes on once they are there.",
      search_options(), positional);
  if (parsed.exit_status) return *parsed.exit_status;
  if (!parsed.has("name")) return bad_input({"search: expected a name"});

  const fs::path path = trajectory_path(project_root(), parsed.get<std::string>("name"));
  if ((parsed.flag("resume") || parsed.has("continue")) && !fs::exists(path)) {
    return bad_input({path.string() + ": nothing to resume"});
  }
  const bool existed = fs::exists(path);
  Result<Trajectory> trajectory = Trajectory::open(path, Trajectory::Access::append);
  if (!trajectory) return bad_input(trajectory.error());
  Result<Header> header = choose_header(parsed, *trajectory);
  Result<std::unique_ptr<Model>> model =
      header ? make_model(parsed, *header, path) : Result<std::unique_ptr<Model>>(header.error());
  Result<PendingJournal> journal = PendingJournal::open(path);
  if (!model || !journal) {
    if (!existed) fs::remove(path);
    return bad_input(model ? journal.error() : model.error());
  }
  DeviceEvaluator evaluator(evaluator_options(*header));

  ReplayedSearch search;
  search.header = *header;
  SearchEnd end;
  {
    Progress progress;
    SearchObserver observer = collect_into(search, KeepCandidates::no);
    observer.progress = [&progress](const std::string& text) { progress.show(text + " …"); };
    end = run_search(*header,
                     {*trajectory, &*journal, **model, evaluator, deadline_of(header->settings),
                      std::move(observer), go_on_with(parsed), parsed.flag("stop")});
  }
  search.events = trajectory->line();
  search.stop_reason = end.reason;
  return report_end(parsed, search, end);
}

}  // namespace rekernel

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>
#include <mutex>
#include <optional>

#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/evaluators.h"
#include "harness/cli/launchers.h"
#include "harness/cli/search_options.h"
#include "harness/compile/compiler_message.h"
#include "harness/gpu/choice.h"
#include "harness/project/root.h"
#include "harness/project/unfinished_searches.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/suggestion.h"
#include "harness/terminal/tables.h"
#include "replay/model/files_model.h"
#include "replay/model/http_model.h"
#include "replay/model/openai_protocol.h"
#include "replay/model/recorded_model.h"
#include "replay/report/replay_report.h"
#include "replay/report/status.h"
#include "replay/search/search.h"
#include "replay/trajectory/pending_journal.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

/// Lines on standard error, above the one that is rewritten in place.
class Notices {
 public:
  void show(const std::string& text) {
    const std::lock_guard lock(mutex_);
    progress_.show(text);
  }
  void say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    progress_.show("");
    std::cerr << wrapped(text, page_columns, 2) << std::endl;
  }

 private:
  std::mutex mutex_;
  Progress progress_;
};

/// The deadline of this run: the command line's, else the recorded one.
std::optional<Clock::time_point> deadline_of(const ParsedArguments& parsed,
                                             const Settings& settings) {
  const std::int64_t minutes =
      parsed.has("deadline") ? parsed.get<std::int64_t>("deadline") : settings.deadline_minutes;
  if (minutes == 0) return std::nullopt;
  constexpr std::int64_t century = 100LL * 366 * 24 * 60;
  return Clock::now() + std::chrono::minutes(std::min(minutes, century));
}

fs::path exchange_folder(const ParsedArguments& parsed, fs::path trajectory) {
  if (parsed.has("exchange")) return parsed.get<std::string>("exchange");
  return trajectory.replace_extension(".exchange");
}

Result<std::unique_ptr<Model>> make_model(const ParsedArguments& parsed, const ChosenSearch& chosen,
                                          const fs::path& trajectory,
                                          std::optional<Clock::time_point> deadline,
                                          Notices& notices) {
  const std::string& replies = parsed.get<std::string>("replies");
  if (replies == "openai") {
    AskingOptions options;
    options.reply_tokens = chosen.header.settings.reply_tokens;
    options.concurrency = static_cast<int>(parsed.get<std::int64_t>("concurrency"));
    options.deadline = deadline;
    options.say = [&notices](const std::string& text) { notices.say(text); };
    options.progress = [&notices](const std::string& text) { notices.show(text); };
    return std::unique_ptr<Model>(
        std::make_unique<HttpModel>(chosen.endpoints, openai_protocol, std::move(options)));
  }
  if (replies == "recorded") {
    auto model =
        RecordedModel::load(trajectory_path(project_root(), parsed.get<std::string>("from")));
    if (!model) return model.error();
    return std::unique_ptr<Model>(std::move(*model));
  }
  return std::unique_ptr<Model>(std::make_unique<FilesModel>(exchange_folder(parsed, trajectory)));
}

/// `taken` becomes true once the trajectory holds what the file says.
std::function<Result<Continuation>(const Settings&)> go_on_with(const ParsedArguments& parsed,
                                                                std::atomic<bool>& taken) {
  if (!parsed.has("continue")) return {};
  return [path = parsed.get<std::string>("continue"), &taken](const Settings& settings) {
    taken = true;
    return load_continuation(path, settings);
  };
}

/// Says which command goes on. Before anything was recorded, that is the one that was given.
void tell_interruption(const ParsedArguments& parsed, const fs::path& path, bool continued,
                       Notices& notices) {
  std::error_code ignored;
  const auto size = fs::file_size(path, ignored);
  const bool begun = !ignored && size > 0;
  notices.say(begun ? "interrupted; this goes on with it: " + resuming_command(parsed, continued)
                    : "interrupted before anything was recorded: the same command starts again");
}

/// A search that got nothing out of its replies is no success, whatever ended it.
int report_over(const ReplayedSearch& search, const std::string& name, const std::string& reason) {
  if (reason == stop_for_unusable_replies) {
    bad_input({"the search ended early: " + search.stop_note});
    std::cerr << wrapped("rekernel search " + name +
                             " --resume --replies openai repeats that round, with --base-url and "
                             "--key-variable as before or of another endpoint. --ask-as NAME asks "
                             "for another model, --reply-tokens N for longer replies; --as-is "
                             "takes whatever comes.",
                         page_columns, 2)
              << "\n";
    return exit_verdict_failed;
  }
  const auto written = [](const ReplayedCandidate& one) { return !one.sha256.empty(); };
  const auto passed = [](const ReplayedCandidate& one) { return one.outcome.passed(); };
  const auto& candidates = search.candidates;
  if (std::none_of(candidates.begin(), candidates.end(), written)) {
    const std::string last =
        candidates.empty()
            ? "no kernel was asked for; rekernel search " + name + " --status says why"
            : candidates.back().id + ": " + headline(candidates.back().outcome.message);
    bad_input({"the search is over (" + reason + ") and got nothing: none of " +
               std::to_string(candidates.size()) + " replies held a kernel; " + last});
    return exit_verdict_failed;
  }
  std::cerr << "the search is over: " << reason
            << (std::none_of(candidates.begin(), candidates.end(), passed) ? "; no kernel passed"
                                                                           : "")
            << "\n";
  return exit_good;
}

int report_end(const ParsedArguments& parsed, const ReplayedSearch& search, const SearchEnd& end) {
  if (parsed.flag("json")) {
    std::cout << pretty_json(replay_json(search));
  } else if (!search.rounds.empty()) {
    std::cout << to_text(round_table(search), terminal_style()) << "\n" << metrics_text(search);
  }
  if (!end.interruption) {
    return report_over(search, parsed.get<std::string>("name"), end.reason);
  }
  if (end.interruption->kind == Interruption::Kind::waiting) {
    std::cerr << wrapped(end.interruption->message, page_columns, 4) << "\n";
    if (search.header.replies == "openai" && !parsed.given("replies")) {
      std::cerr
          << "its replies came from an endpoint so far; without --replies openai, the rest is "
             "asked for by files\n";
    }
    return exit_waiting;
  }
  bad_input({end.interruption->message});
  return end.interruption->kind == Interruption::Kind::mismatch ? exit_verdict_failed
                                                                : exit_bad_input;
}

/// While it lives and afterwards, as long as the search has not ended, git does not see its file.
/// That this cannot be is no reason to end a search.
class IgnoredUntilItEnds {
 public:
  IgnoredUntilItEnds() { update(); }
  IgnoredUntilItEnds(const IgnoredUntilItEnds&) = delete;
  IgnoredUntilItEnds& operator=(const IgnoredUntilItEnds&) = delete;
  ~IgnoredUntilItEnds() { update(); }

 private:
  static void update() {
    if (const Result<fs::path> own = own_project()) (void)ignore_unfinished_searches(*own).ok();
  }
};

/// Why replies that cost money would wait for a GPU; nothing where one is there, or nobody pays.
std::optional<std::string> why_nothing_is_evaluated(const ParsedArguments& parsed) {
  const bool asks = parsed.get<std::string>("replies") == "openai" && !parsed.flag("stop");
  const bool here = parsed.get<std::string>("launcher") == "local";
  if (!asks || !here || parsed.flag("without-gpu")) return std::nullopt;
  const Result<std::vector<VisibleGpu>> gpus = visible_gpus();
  if (!gpus) return gpus.error().message;
  return gpus->empty() ? std::optional<std::string>("no GPU") : std::nullopt;
}

/// Where the models are asked in another way than is recorded, a person should see it.
void tell_endpoints(const ChosenSearch& chosen, Notices& notices) {
  for (const Endpoint& endpoint : chosen.endpoints) {
    const ModelSettings& record = endpoint.record;
    notices.say(
        "model " + record.name + ": " + record.base_url +
        (record.ask_as.empty() ? "" : ", asked as " + record.ask_as) +
        (endpoint.key.empty() ? ", without a key" : ", with the key in " + record.key_variable));
  }
}

Error no_such_search(const ParsedArguments& parsed, const std::string& what) {
  const std::string& name = parsed.get<std::string>("name");
  return {trajectory_path(project_root(), name).string() + ": " + what +
          did_you_mean(name, search_names(project_root()))};
}

int print_status(const ParsedArguments& parsed, const fs::path& path) {
  if (!fs::exists(path)) return bad_input(no_such_search(parsed, "no such search"));
  const Result<SearchStatus> status = search_status(path);
  if (!status) return bad_input(status.error());
  if (parsed.flag("json")) {
    std::cout << pretty_json(status_json(*status));
    return exit_good;
  }
  const fs::path exchange = exchange_folder(parsed, path);
  std::cout << status_text(*status, fs::exists(exchange) ? exchange : fs::path());
  return exit_good;
}

}  // namespace

int search_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, search_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (Result<Ok> checked = check_search_options(parsed); !checked) {
    return bad_input(checked.error());
  }

  if (parsed.has("problem")) {
    const Result<std::string> problem = named_problem(parsed, parsed.get<std::string>("name"));
    if (!problem) return bad_input(problem.error());
  }
  const fs::path path = trajectory_path(project_root(), parsed.get<std::string>("name"));
  if (parsed.flag("status")) return print_status(parsed, path);
  if (const Result<fs::path> own = own_project(); !own && path != parsed.get<std::string>("name")) {
    return bad_input(own.error());
  }
  const bool existed = fs::exists(path);
  if (resumes(parsed) && !existed) return bad_input(no_such_search(parsed, "nothing to resume"));
  Result<Trajectory> trajectory = Trajectory::open(path, Trajectory::Access::append);
  if (!trajectory) return bad_input(trajectory.error());
  Result<ChosenSearch> chosen = choose_search(parsed, *trajectory);
  Result<PendingJournal> journal = PendingJournal::open(path);
  if (!chosen || !journal) {
    if (!existed) fs::remove(path);
    return bad_input(chosen ? journal.error() : chosen.error());
  }
  Notices notices;
  const std::optional<Clock::time_point> deadline = deadline_of(parsed, chosen->header.settings);
  Result<std::unique_ptr<Model>> model = make_model(parsed, *chosen, path, deadline, notices);
  if (!model) {
    if (!existed) fs::remove(path);
    return bad_input(model.error());
  }
  const auto say = [&notices](const std::string& text) { notices.say(text); };
  std::atomic<bool> continued = false;
  Result<LaunchedEvaluator> launched =
      launched_evaluator(parsed, path, !existed, *chosen, deadline, say,
                         [&] { tell_interruption(parsed, path, continued, notices); });
  if (!launched) {
    if (!existed) fs::remove(path);
    return bad_input(launched.error());
  }
  if (const auto reason = why_nothing_is_evaluated(parsed)) {
    if (!existed) fs::remove(path);
    std::cerr << wrapped(
                     "nothing is asked for, since nothing here can judge the answers (" + *reason +
                         "): the same command goes on where there is a GPU; --launcher slurm or "
                         "command sends candidates to one, and --without-gpu asks all the same",
                     page_columns, 2)
              << "\n";
    return exit_waiting;
  }
  const IgnoredUntilItEnds keep_out_of_git;
  tell_endpoints(*chosen, notices);
  PoolEvaluator evaluator(std::move(launched->options));

  ReplayedSearch search;
  search.header = chosen->header;
  SearchObserver observer = collect_into(search, KeepCandidates::no);
  observer.progress = [&notices](const std::string& text) { notices.show(text + " …"); };
  observer.say = say;
  std::vector<ModelSettings> endpoints;
  for (const Endpoint& endpoint : chosen->endpoints) endpoints.push_back(endpoint.record);
  const SearchEnd end = run_search(
      chosen->header, {*trajectory, &*journal, **model, evaluator,
                       [deadline] { return deadline && Clock::now() >= *deadline; },
                       std::move(observer), go_on_with(parsed, continued), parsed.flag("stop"),
                       std::move(endpoints), parsed.flag("as-is"), resumes(parsed)});
  notices.show("");
  if (!end.interruption && launched->recorded) launched->recorded();
  search.events = trajectory->line();
  search.stop_reason = end.reason;
  search.stop_note = end.note;
  return report_end(parsed, search, end);
}

}  // namespace rekernel

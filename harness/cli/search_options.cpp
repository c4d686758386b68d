#include "harness/cli/search_options.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <limits>

#include "harness/base/text.h"
#include "harness/cli/launchers.h"
#include "harness/cli/search_references.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/project/candidates.h"
#include "harness/project/root.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/suggestion.h"
#include "replay/search/search.h"
#include "replay/search/search_file.h"
#include "replay/search/study.h"
#include "replay/trajectory/inspection.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

/// Of the settings that a trajectory holds: where a search goes on, they are what they are.
constexpr std::array recorded_options = {
    "problem", "settings",  "model",     "rounds", "study",        "profiles",
    "ideas",   "branches",  "survivors", "bank",   "token-budget", "prompt-tokens",
    "seed",    "reference", "target",    "notes",  "tries"};

constexpr std::array endpoint_options = {"base-url", "key-variable", "ask-as",      "header",
                                         "body",     "timeout",      "ca-file",     "limit-field",
                                         "price",    "endpoints",    "concurrency", "stream"};

/// Whether it names a problem's file and no problem.
bool is_problem_file(const std::string& name) {
  return name.ends_with(".json") || name.find('/') != std::string::npos;
}

/// A search keeps its problem's id, and no file of a problem that is no project's.
bool is_kept(const GivenOption& option) {
  const bool file =
      option.name == "problem" && !option.values.empty() && is_problem_file(option.values.front());
  return !file && std::find(recorded_options.begin(), recorded_options.end(), option.name) !=
                      recorded_options.end();
}

/// What to do instead of giving the option to --resume.
std::string instead_of(const std::string& option) {
  constexpr std::array extensible = {"rounds", "token-budget", "notes"};
  if (std::find(extensible.begin(), extensible.end(), option) != extensible.end()) {
    return "; --continue FILE changes it after a stop";
  }
  if (option == "model") return "; --ask-as NAME asks the endpoint for another model";
  return "";
}

template <class Number>
void take_number(const ParsedArguments& parsed, const char* name, Number& value) {
  if (!parsed.has(name)) return;
  // What does not fit stays out of range, for the header's reader to refuse.
  value = static_cast<Number>(std::clamp<std::int64_t>(parsed.get<std::int64_t>(name),
                                                       std::numeric_limits<Number>::min(),
                                                       std::numeric_limits<Number>::max()));
}

std::vector<std::string> list_of(const ParsedArguments& parsed, const char* name) {
  return parsed.has(name) ? parsed.get<std::vector<std::string>>(name) : std::vector<std::string>{};
}

bool asks_endpoints(const ParsedArguments& parsed) {
  return parsed.get<std::string>("replies") == "openai";
}

void take_text(const ParsedArguments& parsed, const char* name, std::optional<std::string>& value) {
  if (parsed.has(name)) value = parsed.get<std::string>(name);
}

bool is_kind_of_replies(const std::string& word) {
  constexpr std::array kinds = {"files", "openai", "recorded"};
  return std::find(kinds.begin(), kinds.end(), word) != kinds.end();
}

/// "NAME: VALUE" each; an empty one alone says that there is none.
Result<std::map<std::string, std::string>> read_headers(const std::vector<std::string>& lines) {
  std::map<std::string, std::string> headers;
  if (lines.size() == 1 && lines.front().empty()) return headers;
  for (const std::string& line : lines) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos)
      return Error{"--header: expected \"NAME: VALUE\", or '' alone for none"};
    const std::size_t value = line.find_first_not_of(' ', colon + 1);
    headers[line.substr(0, colon)] = value == std::string::npos ? "" : line.substr(value);
  }
  return headers;
}

Result<EndpointWish> endpoint_wish(const ParsedArguments& parsed) {
  EndpointWish wish;
  take_text(parsed, "base-url", wish.base_url);
  take_text(parsed, "key-variable", wish.key_variable);
  take_text(parsed, "ask-as", wish.ask_as);
  take_text(parsed, "body", wish.body);
  take_text(parsed, "ca-file", wish.ca_file);
  take_text(parsed, "limit-field", wish.limit_field);
  if (parsed.has("timeout")) wish.timeout_s = parsed.get<std::int64_t>("timeout");
  if (parsed.flag("stream")) wish.stream = true;
  if (resumes(parsed) && parsed.has("reply-tokens")) {
    wish.reply_tokens = parsed.get<std::int64_t>("reply-tokens");
  }
  if (parsed.has("header")) {
    auto headers = read_headers(list_of(parsed, "header"));
    if (!headers) return headers.error();
    wish.headers = std::move(*headers);
  }
  if (parsed.has("price")) {
    const std::string& price = parsed.get<std::string>("price");
    const std::size_t colon = price.find(':');
    if (colon == std::string::npos) {
      return Error{
          "--price: expected US dollars for a million tokens of prompt and of reply, as "
          "1.25:10"};
    }
    wish.prompt_price = price.substr(0, colon);
    wish.reply_price = price.substr(colon + 1);
  }
  return wish;
}

Result<EndpointFile> endpoint_file(const ParsedArguments& parsed) {
  if (parsed.has("endpoints")) return load_endpoint_file(parsed.get<std::string>("endpoints"));
  if (!fs::exists(default_endpoint_file())) return EndpointFile{};
  return load_endpoint_file(default_endpoint_file());
}

Result<std::vector<Endpoint>> choose_endpoints(const ParsedArguments& parsed,
                                               const std::vector<ModelSettings>& models,
                                               ModelsFrom from) {
  if (!asks_endpoints(parsed)) return std::vector<Endpoint>{};
  const Result<EndpointWish> wish = endpoint_wish(parsed);
  if (!wish) return wish.error();
  const Result<EndpointFile> file = endpoint_file(parsed);
  if (!file) return file.error();
  return resolve_endpoints(models, from, *file, *wish);
}

/// Of the study that is named, the search that is named.
Result<SearchFile> search_of_study(const ParsedArguments& parsed, const std::string& name) {
  for (const char* option : {"settings", "problem"}) {
    if (parsed.has(option)) {
      return Error{std::string("--") + option + ": expected it or --study, not both"};
    }
  }
  const std::string& path = parsed.get<std::string>("study");
  Result<Study> study = load_study(path);
  if (!study) return study.error();
  if (std::optional<SearchFile> file = search_of(*study, name)) return std::move(*file);
  std::vector<std::string> names;
  for (const std::string& one : study->problems) names.push_back(study->search_name(one));
  return Error{path + ": no search " + one_line(name, 64) + did_you_mean(name, names) +
               ": expected one of " + joined(names)};
}

/// The settings file or the study, where one is given, with what the command line says on top.
Result<SearchFile> wanted_search(const ParsedArguments& parsed, const std::string& name) {
  SearchFile file;
  if (parsed.has("study")) {
    Result<SearchFile> found = search_of_study(parsed, name);
    if (!found) return found.error();
    file = std::move(*found);
  }
  if (parsed.has("settings")) {
    Result<SearchFile> loaded = load_search_file(parsed.get<std::string>("settings"));
    if (!loaded) return loaded.error();
    file = std::move(*loaded);
  }
  if (parsed.has("problem")) {
    Result<std::string> id = named_problem(parsed, parsed.get<std::string>("name"));
    if (!id) return id.error();
    file.problem = *std::move(id);
  }
  if (parsed.has("notes")) file.notes = parsed.get<std::string>("notes");
  const std::string& replies = parsed.get<std::string>("replies");
  if (file.replies.empty()) file.replies = replies;
  if (is_kind_of_replies(file.replies) && file.replies != replies) {
    return Error{parsed.get<std::string>("settings") +
                 ": replies: it describes them in words, and --replies " + file.replies +
                 " asks so; expected both to be the same"};
  }
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
  // Recorded replies are what they are.
  if (replies == "recorded") settings.tries = 1;
  take_number(parsed, "tries", settings.tries);
  if (parsed.flag("mixed-gpus")) settings.mixed_gpus = true;
  if (parsed.flag("profiles")) settings.profiles = true;
  const std::vector<std::string> names = list_of(parsed, "model");
  if (!names.empty()) settings.models.clear();
  for (const std::string& name : names) settings.models.push_back({name});
  if (settings.models.empty()) {
    if (asks_endpoints(parsed)) return Error{"--replies openai: expected --model NAME"};
    settings.models.push_back({"chat"});
  }
  for (const std::string& name : list_of(parsed, "seed")) {
    const Result<fs::path> folder = candidate_folder(name);
    if (!folder) return Error{"--seed: " + folder.error().message};
    file.seeds.push_back(folder->string());
  }
  if (const auto ids = list_of(parsed, "reference"); !ids.empty()) settings.references = ids;
  const std::vector<std::string> known = library_reference_ids(file.problem);
  if (settings.references.empty() && !known.empty()) settings.references = {known.front()};
  settings.references = reference_ids(std::move(settings.references), file.problem);
  if (parsed.has("target")) {
    file.device = known_device(parsed.get<std::string>("target"));
    if (!file.device) {
      const std::string& target = parsed.get<std::string>("target");
      return Error{"--target " + one_line(target, 64) + did_you_mean(target, {"h200", "l40s"}) +
                   ": expected h200 or l40s; other GPUs need --settings"};
    }
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

Result<ChosenSearch> resumed_search(const ParsedArguments& parsed, Header header,
                                    const fs::path& path) {
  if (parsed.flag("mixed-gpus") && !header.settings.mixed_gpus) {
    return Error{path.string() +
                 ": --mixed-gpus: the search began without it, and compares times as they are; "
                 "expected GPUs of one kind, or a new search"};
  }
  if (parsed.has("continue")) {  // it is read at the stop, which may be long from now
    const auto file = read_json_file(parsed.get<std::string>("continue"));
    if (!file) return file.error();
  }
  const auto models = last_endpoints(path, header.settings.models);
  if (!models) return models.error();
  auto endpoints = choose_endpoints(parsed, *models, ModelsFrom::recording);
  if (!endpoints) return Error{path.string() + ": " + endpoints.error().message};
  return ChosenSearch{std::move(header), std::move(*endpoints)};
}

Result<ChosenSearch> wanted_search(const ParsedArguments& parsed, const fs::path& path) {
  Result<SearchFile> wanted = wanted_search(parsed, path.stem().string());
  if (!wanted) return wanted.error();
  auto endpoints = choose_endpoints(parsed, wanted->settings.models, ModelsFrom::owner);
  if (!endpoints) return endpoints.error();
  for (std::size_t i = 0; i < endpoints->size(); ++i) {
    wanted->settings.models[i] = (*endpoints)[i].record;
  }
  Result<Header> header =
      new_header(path.stem().string(), *wanted, project_root(), toolchain_versions());
  if (!header) return header.error();
  return ChosenSearch{std::move(*header), std::move(*endpoints)};
}

Result<ChosenSearch> unchecked_search(const ParsedArguments& parsed, Trajectory& trajectory) {
  Result<std::optional<Header>> recorded = recorded_header(trajectory);
  if (!recorded) return recorded.error();
  const fs::path& path = trajectory.path();
  if (resumes(parsed) && *recorded) return resumed_search(parsed, std::move(**recorded), path);
  if (!parsed.has("problem") && !parsed.has("settings") && !parsed.has("study")) {
    return Error{*recorded ? path.string() + " exists; --resume goes on with its recorded settings"
                           : "search: expected --problem, --settings or --study"};
  }
  Result<ChosenSearch> wanted = wanted_search(parsed, path);
  if (!wanted || !*recorded) return wanted;
  if (const auto difference = first_difference(**recorded, wanted->header)) {
    return Error{
        path.string() + " exists and differs in " + *difference +
        "; --resume goes on with its recorded settings" +
        (*difference == "settings.models" ? ", also with another --base-url or --ask-as" : "")};
  }
  wanted->header = std::move(**recorded);
  return wanted;
}

}  // namespace

bool resumes(const ParsedArguments& parsed) {
  return parsed.flag("resume") || parsed.has("continue");
}

std::string resuming_command(const ParsedArguments& parsed, bool continued) {
  std::string command = "rekernel search " + shell_word(parsed.get<std::string>("name"));
  const bool goes_on_by_file = parsed.has("continue") && !continued;
  if (!goes_on_by_file) command += " --resume";
  for (const GivenOption& option : parsed.options) {
    const bool left_out =
        option.name == "resume" || (option.name == "continue" && continued) || is_kept(option);
    if (left_out) continue;
    if (option.values.empty()) command += " --" + option.name;
    for (const std::string& value : option.values) {
      // A key that somebody wrote into a header should not get into a log.
      const bool secret =
          option.name == "header" && !value.empty() && value.find('$') == std::string::npos;
      command += " --" + option.name + " " + shell_word(secret ? "…" : value);
    }
  }
  return command;
}

Result<std::string> named_problem(const ParsedArguments& parsed, const fs::path& path) {
  const std::string& name = parsed.get<std::string>("problem");
  if (!is_problem_file(name)) return name;
  const Result<std::vector<const Problem*>> added = add_problems(name);
  if (!added) return Error{"--problem " + added.error().message};
  if (added->size() != 1) return Error{"--problem " + name + ": expected one problem's file"};
  const Problem& problem = *added->front();
  if (!is_strangers(problem) || is_problem_file(path.string()) || path.extension() == ".jsonl") {
    return problem.id;
  }
  return Error{"--problem " + name + ": trajectories/ keeps searches for the project's problems: " +
               "expected NAME to be a file's path, as ./" + path.string() + ".jsonl"};
}

Result<Ok> check_search_options(const ParsedArguments& parsed) {
  for (const char* option : recorded_options) {
    if (!resumes(parsed) || !parsed.given(option)) continue;
    const bool problem = option == std::string_view("problem");
    if (problem && is_problem_file(parsed.get<std::string>(option))) continue;
    return Error{std::string("--") + option +
                 ": expected no such option with --resume, which keeps what is recorded" +
                 instead_of(option)};
  }
  const std::string& replies = parsed.get<std::string>("replies");
  const auto belongs_to = [&](const char* option, const char* kind) -> Result<Ok> {
    const bool given =
        option == std::string_view("stream") ? parsed.flag(option) : parsed.given(option);
    if (!given || replies == kind) return Ok{};
    return Error{std::string("--") + option + ": expected --replies " + kind + " with it"};
  };
  for (const char* option : endpoint_options) {
    if (Result<Ok> fits = belongs_to(option, "openai"); !fits) return fits;
  }
  if (Result<Ok> fits = belongs_to("exchange", "files"); !fits) return fits;
  if (Result<Ok> fits = belongs_to("from", "recorded"); !fits) return fits;
  if (replies == "recorded" && !parsed.has("from")) {
    return Error{"--replies recorded needs --from TRAJECTORY"};
  }
  if (Result<Ok> fits = check_launcher_options(parsed); !fits) return fits;
  if (parsed.has("deadline") && parsed.get<std::int64_t>("deadline") < 0) {
    return Error{"--deadline: expected 0 or more minutes"};
  }
  return Ok{};
}

Result<ChosenSearch> choose_search(const ParsedArguments& parsed, Trajectory& trajectory) {
  Result<ChosenSearch> chosen = unchecked_search(parsed, trajectory);
  if (!chosen) return chosen;
  if (Result<Ok> checked = check_references(chosen->header); !checked) return checked.error();
  return chosen;
}

}  // namespace rekernel

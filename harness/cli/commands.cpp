#include "harness/cli/commands.h"

#include <algorithm>
#include <array>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/cli/command.h"
#include "harness/terminal/suggestion.h"

namespace rekernel {

namespace {

constexpr const char* to_begin = "To begin with";
constexpr const char* kernels = "Kernels";
constexpr const char* searches = "Searches";
constexpr const char* problems = "Problems";
constexpr const char* records = "Records and contributions";
constexpr const char* judge = "The judge itself";
constexpr const char* services = "Services";
constexpr const char* help = "Help";

constexpr std::array commands{
    Command{"doctor", to_begin, "what this machine has, and what that allows", doctor_command},
    Command{"list", to_begin, "problems, references, kernels and trajectories", list_command},
    Command{"show", to_begin,
            "one problem or kernel: what it asks, how fast it could be, how fast it is",
            show_command},
    Command{"reproduce", to_begin,
            "the table of % of reference: measured, or recorded without a GPU", reproduce_command},
    Command{"report", to_begin, "the recorded results as text or Markdown", report_command},
    Command{"new", kernels, "scaffold a correct, slow candidate to start from", new_command},
    Command{"check", kernels, "validate and compile candidates; needs no GPU", check_command},
    Command{"explain", kernels, "why a candidate is refused or slow, and what to change",
            explain_command},
    Command{"evaluate", kernels, "judge and time one candidate", evaluate_command},
    Command{"profile", kernels, "what a profiler says of a candidate: what limits it, and where",
            profile_command},
    Command{"bench", kernels, "judge and time the committed kernels on this GPU", bench_command},
    Command{"capture", kernels, "judge what a PyTorch, Triton or CUDA program launches",
            capture_command},
    Command{"export", kernels, "a kernel for C++ programs or for PyTorch", export_command},
    Command{"search", searches, "search for kernels with language models", search_command},
    Command{"study", searches, "go on with all searches of a study", study_command},
    Command{"replay", searches, "replay a recorded search", replay_command},
    Command{"problem check", problems, "read problem files and try what they say",
            problem_check_command},
    Command{"problem import", problems, "make a problem's file of somebody else's PyTorch program",
            problem_import_command},
    Command{"problem verify", problems, "compare definitions with PyTorch in float64, on a GPU",
            problem_verify_command},
    Command{"problem mutants", problems, "judge kernels of wrong definitions, on a GPU",
            problem_mutants_command},
    Command{"claims", records, "judge other people's programs by what they claim", claims_command},
    Command{"results", records, "merge, rank, compare and sign what was measured", results_command},
    Command{"dataset", records, "the records as a data set for training: Parquet, card, Croissant",
            dataset_command},
    Command{"dataset judge", records, "judge random rows of a data set again, on a GPU",
            dataset_judge_command},
    Command{"dataset import", records, "judge other people's kernels, to be rows of a data set",
            dataset_import_command},
    Command{"dataset atif", records, "a search in the agents' format ATIF", dataset_atif_command},
    Command{"verify", records, "everything that a pull request must pass", verify_command},
    Command{"blinding", judge, "can a kernel tell which of its runs are timed, judged or repeated?",
            blinding_command},
    Command{"noise", judge, "time the same work against itself: do the intervals hold?",
            noise_command},
    Command{"errors", judge, "verdicts on kernels and mutants, and their errors beside the bounds",
            errors_command},
    Command{"serve", services, "verdicts as a service, over HTTP", serve_command},
    Command{"task", services, "tasks for agents in Harbor's format", task_command},
    Command{"help", help, "the page of a command; manual pages", help_command},
    Command{"completion", help, "the script that completes commands in a shell",
            completion_command},
};

bool begins_with(const Command& command, const std::string& first_word) {
  return first_word.empty() || command.name == first_word ||
         std::string_view(command.name).starts_with(first_word + " ");
}

std::string listing(const std::vector<CommandGroup>& groups, std::size_t columns) {
  std::size_t width = 0;
  for (const CommandGroup& group : groups) {
    for (const Item& one : group.commands) width = std::max(width, one.term.size());
  }
  std::string text;
  for (const CommandGroup& group : groups) {
    std::vector<Item> items = group.commands;
    for (Item& one : items) one.term.append(width - one.term.size(), ' ');
    text += "\n" + group.title + ":\n" + item_list(items, columns);
  }
  return text;
}

}  // namespace

std::span<const Command> all_commands() { return commands; }

const Command* find_command(const std::string& name) {
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const Command& one) { return one.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

const Command* command_of(const std::vector<std::string>& words) {
  if (words.size() > 1) {
    if (const Command* found = find_command(words[0] + " " + words[1])) return found;
  }
  return words.empty() ? nullptr : find_command(words[0]);
}

std::size_t words_of_name(const Command& command) {
  return std::string_view(command.name).find(' ') == std::string_view::npos ? 1 : 2;
}

Page page_of(const Command& command) {
  std::optional<Page> page;
  command.run(Arguments(command.name, page));
  return page ? *std::move(page) : Page{};
}

std::vector<CommandGroup> listed_commands(const std::string& first_word) {
  std::vector<CommandGroup> groups;
  for (const Command& command : commands) {
    if (!begins_with(command, first_word)) continue;
    if (groups.empty() || groups.back().title != command.group)
      groups.push_back({command.group, {}});
    groups.back().commands.push_back({command.name, command.summary});
  }
  return groups;
}

std::vector<Item> exit_statuses() {
  return {{"0", "good"},
          {"1", "a verdict failed"},
          {"2", "bad usage or input"},
          {"3", "a search waits for replies or for a GPU"}};
}

std::string program_description() {
  return "Rekernel reproduces, replays and checks claims about AI-generated GPU kernels: it "
         "compiles a kernel, judges it on inputs that nobody could foresee, times it beside "
         "libraries, and searches for faster ones with language models.";
}

std::string overview(std::size_t columns) {
  return wrapped("Usage: rekernel COMMAND [arguments] [options]", columns, 7) + "\n\n" +
         wrapped(program_description(), columns) + "\n" + listing(listed_commands(), columns) +
         "\nExit status:\n" + item_list(exit_statuses(), columns) + "\n" +
         wrapped(
             "`rekernel help COMMAND` and `rekernel COMMAND --help` tell the arguments, options "
             "and examples of each; `rekernel --version [--json]` the versions.",
             columns) +
         "\n";
}

std::string overview_of(const std::string& first_word, std::size_t columns) {
  return wrapped("Usage: rekernel " + first_word + " COMMAND [arguments] [options]", columns, 7) +
         "\n" + listing(listed_commands(first_word), columns) + "\n" +
         wrapped("`rekernel help " + first_word + " COMMAND` tells the options of each.", columns) +
         "\n";
}

Error unknown_command(const std::vector<std::string>& words) {
  constexpr std::size_t longest = 64;
  const bool known_first = !words.empty() && !listed_commands(words[0]).empty();
  const std::string name = known_first && words.size() > 1 ? words[0] + " " + words[1]
                           : words.empty()                 ? ""
                                                           : words[0];
  std::vector<std::string> names;
  for (const Command& command : commands) names.emplace_back(command.name);
  return {"unknown command '" + one_line(name, longest) + "'" + did_you_mean(name, names) +
          "; see rekernel help" + (known_first ? " " + words[0] : "")};
}

}  // namespace rekernel

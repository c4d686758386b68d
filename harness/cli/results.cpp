#include "harness/cli/results.h"

#include <string_view>

#include "harness/cli/command.h"
#include "harness/project/recorded.h"
#include "harness/project/root.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

Result<PlacedBenches> all_recorded(const fs::path& root) {
  PlacedBenches benches;
  for (const fs::path& path : recorded_benches(root)) {
    Result<Bench> bench = load_record(root, path);
    if (!bench) return bench.error();
    benches.emplace_back(path, std::move(*bench));
  }
  return benches;
}

namespace {

/// No filter is given that the action would not heed.
Result<Ok> check_filters(const std::string& action, const ParsedArguments& parsed) {
  if (action == "best" || action == "cite") return Ok{};
  for (const char* name : {"problem", "group", "kernel", "badge", "status", "on"}) {
    const bool heeded = action == "sign" && std::string_view(name) == "on";
    if (parsed.has(name) && !heeded) {
      return Error{"--" + std::string(name) + ": expected it with best or cite alone"};
    }
  }
  return Ok{};
}

Page results_page() {
  Page page;
  page.description =
      "merge takes rows of other people and machines into results/; best ranks the kernels of each "
      "problem; compare sets two records beside each other; cite prints what to write beside a "
      "figure; sign signs what you measured.";
  page.takes({"action", "ACTION", "merge, best, compare, cite or sign"},
             one_of({"merge", "best", "compare", "cite", "sign"}));
  page.takes(
      {"what", "WHAT",
       "merge: bench files; best: problems, all by default; compare: two bench files or "
       "folders of results/; cite: a kernel (softmax/online); sign: rows (softmax/online) and "
       "searches (trajectories/softmax)",
       Count::any},
      list_value("WHAT",
                 {Names::kernel, Names::problem, Names::file, Names::folder, Names::anything}));
  page.usage = "merge FILE… | best [PROBLEM…] | compare A B | cite KERNEL | sign WHAT… --key FILE";
  page.examples = {{"rekernel results compare h200 ../other/results/h200/bench.json"},
                   {"rekernel results best softmax --markdown"},
                   {"rekernel results cite softmax/cluster_with_prefetch --on h200"}};
  add_filters(page.group("Which of them"));
  page.group("merge").add_options()(
      "replace", list_value("KERNEL", {Names::kernel})->composing(),
      "take the row of this kernel (softmax/online), though a known signer's is recorded and this "
      "one is not of a known signer");
  page.group("sign").add_options()("key", text_value("FILE", {Names::file}), "the SSH key");
  page.group("Output").add_options()("markdown", po::bool_switch(),
                                     "best: as Markdown, with the history of each best time");
  add_table_options(page.group("Output"));
  return page;
}

}  // namespace

int results_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, results_page());
  if (parsed.exit_status) return *parsed.exit_status;
  const std::vector<std::string> what = parsed.has("what")
                                            ? parsed.get<std::vector<std::string>>("what")
                                            : std::vector<std::string>{};
  const std::string action = parsed.get<std::string>("action");
  if (Result<Ok> heeded = check_filters(action, parsed); !heeded) return bad_input(heeded.error());
  if (action == "merge" || action == "sign") {
    if (const Result<fs::path> own = own_project(); !own) return bad_input(own.error());
  }
  const fs::path root = project_root();
  if (action == "merge") {
    return merge_results(root, what,
                         parsed.has("replace") ? parsed.get<std::vector<std::string>>("replace")
                                               : std::vector<std::string>{});
  }
  if (action == "best") return show_best(root, what, parsed);
  if (action == "compare") return compare_results(root, what, parsed);
  if (action == "cite") return cite_results(root, what, parsed);
  return sign_results(root, what, parsed);
}

}  // namespace rekernel

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

}  // namespace

int results_command(const Arguments& arguments) {
  po::options_description options;
  options.add_options()("action", po::value<std::string>(), "merge, best, compare, cite or sign")(
      "what", po::value<std::vector<std::string>>(),
      "merge: bench files of other people and machines; best: problems, all by default; compare: "
      "two bench files or folders of results/; cite: a kernel (softmax/online); sign: rows "
      "(softmax/online) and searches "
      "(trajectories/softmax) that you measured")(
      "markdown", po::bool_switch(), "best: as Markdown, with the history of each best time")(
      "replace", po::value<std::vector<std::string>>()->composing(),
      "merge: take the row of this kernel (softmax/online), though a known signer's is recorded "
      "and "
      "this one is not of a known signer")("key", po::value<std::string>(), "sign: the SSH key");
  add_filters(options);
  add_table_options(options);
  po::positional_options_description positional;
  positional.add("action", 1).add("what", -1);
  const ParsedArguments parsed = parse_arguments(
      arguments,
      "rekernel results merge FILE… | best [PROBLEM…] | compare A B | cite KERNEL | sign WHAT… "
      "--key FILE",
      "rekernel results compare h200 ../other/results/h200/bench.json\n"
      "  rekernel results best softmax --markdown\n"
      "  rekernel results cite softmax/cluster_with_prefetch --on h200",
      options, positional);
  if (parsed.exit_status) return *parsed.exit_status;
  const std::vector<std::string> what = parsed.has("what")
                                            ? parsed.get<std::vector<std::string>>("what")
                                            : std::vector<std::string>{};
  const std::string action = parsed.has("action") ? parsed.get<std::string>("action") : "";
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
  if (action == "sign") return sign_results(root, what, parsed);
  return bad_input({"results: expected merge, best, compare, cite or sign" +
                    (action.empty() ? "" : ", got '" + action + "'")});
}

}  // namespace rekernel

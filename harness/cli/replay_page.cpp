#include "harness/cli/replay_page.h"

#include "harness/cli/evaluators.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace po = boost::program_options;

Page replay_page() {
  Page page;
  page.description =
      "Runs the search again on its recorded replies and verdicts, which must reproduce its file "
      "byte for byte; no GPU is needed. A published run is shown with its code when it is asked "
      "for "
      "by name.";
  page.takes({"trajectory", "NAME", "name (of trajectories/NAME.jsonl) or file; all by default",
              Count::any},
             list_value("NAME", {Names::search, Names::file}));
  page.examples = {{"rekernel replay conv2d-13-rounds --walk"},
                   {"rekernel replay conv2d-13-rounds --candidate r4.i1.b1 --code"},
                   {"rekernel replay softmax --measure --output results/h200/replay"}};
  page.group("What is shown")
      .add_options()("walk", po::bool_switch(),
                     "candidate by candidate: idea, verdict, time, and the code's difference to "
                     "its parent; in a "
                     "pager on a terminal")("round", po::value<int>()->value_name("N"),
                                            "a walk through this round alone")(
          "candidate", list_value("ID"), "this candidate alone (r4.i2.b1)")(
          "code", po::bool_switch(), "a walk with the whole code in place of differences")(
          "markdown", po::bool_switch(), "a walk as Markdown")(
          "table", po::bool_switch(), "the tables alone, for a published run too")(
          "json", po::bool_switch(), "print the reports as a JSON list")(
          "output", text_value("DIR", {Names::folder}),
          "folder for the report as JSON and Markdown");
  add_table_options(page.group("What is shown"));
  page.group("Measuring again")
      .add_options()("measure", po::bool_switch(),
                     "compile, check and time every candidate again on this GPU");
  add_gpu_options(page.group("Measuring again"));
  page.group("Taking a candidate out")
      .add_options()("extract", text_value("ID"),
                     "write this candidate (r4.i2.b1) as a folder, and no more")(
          "to", text_value("DIR", {Names::folder}),
          "folder for --extract; the present one by default, with --record generated/PROBLEM")(
          "name", text_value("NAME"), "name of the kernel that --extract writes")(
          "record", po::bool_switch(),
          "with --extract: the search's measurement becomes the kernel's in "
          "results/<gpu>/bench.json");
  page.statuses[1] = "a file is not what its search reproduces";
  return page;
}

}  // namespace rekernel

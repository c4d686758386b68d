#pragma once

#include "harness/terminal/page.h"

namespace rekernel::testing {

/// A page with everything that a page can have.
inline Page a_page() {
  namespace po = boost::program_options;
  Page page;
  page.description = "Measures things.\n\n'Quoted' words, and a second paragraph.";
  page.takes({"problem", "PROBLEM", "what to measure", Count::one},
             text_value("PROBLEM", {Names::problem}));
  page.takes({"kernel", "KERNEL", "how", Count::any}, list_value("KERNEL", {Names::kernel}));
  page.examples = {{"rekernel measure softmax"}, {"rekernel measure softmax one", "One alone"}};
  page.group("Measuring")
      .add_options()("samples", whole_number(10, 100)->default_value(60), "timed samples")(
          "pytorch", one_of({"auto", "on", "off"})->default_value("auto"), "time PyTorch too");
  page.group("Output").add_options()("json", po::bool_switch(), "print JSON")(
      "note", list_value("TEXT"), "a note")("into", text_value("DIR", {Names::folder}), "where");
  page.statuses[1] = "a verdict failed";
  return page;
}

}  // namespace rekernel::testing

#include "harness/report/citation.h"

#include "harness/base/files.h"
#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/project/recorded.h"
#include "harness/records/report.h"
#include "harness/report/judgement.h"

namespace rekernel {

namespace {

/// The page's example. No choice among the records, so that a new kernel leaves the page as it is.
constexpr const char* example_kernel = "softmax/cluster_with_prefetch";
constexpr const char* example_device = "h200";

/// What the command prints, as Markdown.
std::string example(const Bench& bench, const BenchRow& row) {
  constexpr std::size_t columns = 118;
  return std::string("\n```sh\nbuild/rekernel results cite ") + example_kernel + " --on " +
         example_device + "\n```\n\n" +
         quoted_lines(wrapped(markdown_text(citation_sentence(bench, row)), columns), "> ") +
         "\n```bibtex\n" + citation_entry(row) + "```\n\n";
}

}  // namespace

std::string citation_sentence(const Bench& bench, const BenchRow& row) {
  const JudgedOn judged = judged_on(bench, row);
  const std::string name = row.problem + "/" + row.kernel;
  std::string text = "On an " + judged.device + " (driver " + judged.driver + "), " + name;
  if (row.samples_ns.empty()) {
    text += " was not timed";
  } else {
    text += " takes " + judged.time + ", the median of " + counted(row.samples_ns.size(), "run") +
            ", each with new inputs and a cold L2 cache";
    if (row.headline()) {
      text += "; it reaches " + judged.percent_of_reference + ", measured interleaved in one run";
    }
  }
  text += ". Rekernel " REKERNEL_VERSION " (judge " + judged.judge + ") gives it the verdict " +
          judged.verdict + ", badges: " + judged.badges;
  if (!row.max_error.empty()) text += "; errors against a float64 truth: " + judged.errors;
  return text + ". Measured " + judged.measured + ", " +
         (judged.measured_by == "unsigned" ? "" : "signed by ") + judged.measured_by +
         "; SHA-256 of source and plan " + row.sha256 + ".";
}

std::string citation_entry(const BenchRow& row) {
  return "@software{rekernel,\n"
         "  title   = {Rekernel: judging, timing and replaying {AI}-generated {GPU} kernels},\n"
         "  author  = {{The Rekernel authors}},\n"
         "  version = {" REKERNEL_VERSION "},\n  year    = {" +
         row.measured.substr(0, row.measured.find('-')) + "},\n  note    = {Judge " + row.harness +
         "; results recorded " + row.measured + "},\n  license = {Apache-2.0}\n}\n";
}

Result<std::string> reporting_page(const std::filesystem::path& root) {
  const std::filesystem::path path = root / "results" / "REPORTING.md";
  Result<std::string> page = read_file(path);
  if (!page) return page.error();
  std::string section = "\nThe example is not recorded.\n\n";
  const std::filesystem::path recorded = root / "results" / example_device / "bench.json";
  if (std::filesystem::exists(recorded)) {
    const Result<Bench> bench = load_record(root, recorded);
    if (!bench) return bench.error();
    for (const BenchRow& row : bench->rows) {
      if (row.problem + "/" + row.kernel == example_kernel) section = example(*bench, row);
    }
  }
  if (Result<Ok> replaced = replace_section(*page, "citation", section, path); !replaced) {
    return replaced.error();
  }
  return page;
}

}  // namespace rekernel

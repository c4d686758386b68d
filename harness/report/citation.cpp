#include "harness/report/citation.h"

#include "harness/base/text.h"
#include "harness/report/judgement.h"

namespace rekernel {

std::string citation_sentence(const Bench& bench, const BenchRow& row, const std::string& version) {
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
  text += ". Rekernel " + version + " (judge " + judged.judge + ") gives it the verdict " +
          judged.verdict + ", badges: " + judged.badges;
  if (!row.max_error.empty()) text += "; errors against a float64 truth: " + judged.errors;
  return text + ". Measured " + judged.measured + ", " +
         (judged.measured_by == "unsigned" ? "" : "signed by ") + judged.measured_by +
         "; SHA-256 of source and plan " + row.sha256 + ".";
}

std::string citation_entry(const BenchRow& row, const std::string& version) {
  return "@software{rekernel,\n"
         "  title   = {Rekernel: judging, timing and replaying {AI}-generated {GPU} kernels},\n"
         "  author  = {{The Rekernel authors}},\n"
         "  version = {" +
         version + "},\n  year    = {" + row.measured.substr(0, row.measured.find('-')) +
         "},\n  note    = {Judge " + row.harness + "; results recorded " + row.measured +
         "},\n  license = {Apache-2.0}\n}\n";
}

}  // namespace rekernel

#include "harness/project/slow_results.h"

#include <sstream>

#include "harness/candidate/candidate.h"
#include "harness/problems/catalog.h"
#include "harness/project/recorded.h"
#include "harness/records/record.h"

namespace rekernel {

std::vector<std::string> stale_slow_results(const std::filesystem::path& root) {
  std::vector<std::string> complaints;
  for (const std::filesystem::path& path : recorded_files(root, slow_file)) {
    const Result<Bench> bench = load_record(root, path);
    if (!bench) {
      std::istringstream lines(bench.error().message);
      for (std::string line; std::getline(lines, line);) complaints.push_back(line);
      continue;
    }
    const std::string where = std::filesystem::relative(path, root).string() + ": ";
    for (const BenchRow& row : bench->rows) {
      const std::string name = row.problem + "/" + row.kernel;
      const Problem* problem = find_problem(row.problem);
      if (!problem || row.kernel != slow_name) {
        complaints.push_back(where + name + ": expected the slow candidate of a problem");
      } else if (candidate_sha256(scaffold_candidate(*problem, slow_name)) != row.sha256) {
        complaints.push_back(where + name +
                             ": another slow candidate is made of the problem now; measure it with "
                             "`rekernel bench --slow " +
                             row.problem + " --record`");
      }
    }
  }
  return complaints;
}

}  // namespace rekernel

#include "harness/project/recorded.h"

#include <algorithm>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/records/signature.h"

namespace rekernel {

std::vector<std::string> unknown_references(const Bench& bench, const std::string& where) {
  constexpr std::size_t longest_name = 100;
  std::vector<std::string> found;
  for (std::size_t i = 0; i < bench.rows.size(); ++i) {
    const BenchRow& row = bench.rows[i];
    const Problem* problem = find_problem(row.problem);
    if (!problem) continue;  // spoken of elsewhere
    std::vector<std::string> known = library_reference_ids(row.problem);
    for (std::string& id : pytorch_ids(*problem)) known.push_back(std::move(id));
    for (const RecordedReference& reference : row.references) {
      if (std::find(known.begin(), known.end(), reference.id) != known.end()) continue;
      found.push_back(where + ": rows[" + std::to_string(i) + "] (" +
                      one_line(row.problem + "/" + row.kernel, longest_name) + "): references: '" +
                      one_line(reference.id, longest_name) + "' is not a reference of " +
                      problem->id + "; expected " + joined(known));
    }
  }
  return found;
}

Result<Bench> load_record(const std::filesystem::path& root, const std::filesystem::path& path) {
  Result<Bench> bench = load_bench_of(root, path);
  if (!bench) return bench;
  if (const auto found = unknown_references(*bench, path.string()); !found.empty()) {
    return Error{joined(found, "\n")};
  }
  return bench;
}

}  // namespace rekernel

#include "harness/cli/recorded.h"

#include <algorithm>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/references.h"
#include "harness/records/known_devices.h"
#include "harness/records/signature.h"
#include "ops/catalog.h"

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
                      one_line(reference.id, longest_name) + "' is no reference of " + problem->id +
                      "; expected " + joined(known));
    }
  }
  return found;
}

std::vector<std::string> unlike_known_device(const DeviceFacts& device) {
  const KnownDevice* known = find_known_device(device.name);
  if (!known) return {};
  std::vector<std::string> found;
  const auto compare = [&](const char* field, std::int64_t said, std::int64_t is) {
    if (said == is) return;
    found.push_back(std::string("device.") + field + ": " + std::to_string(said) + ", but " +
                    std::string(known->name) + " has " + std::to_string(is));
  };
  compare("multiprocessors", device.multiprocessors, known->multiprocessors);
  compare("l2_bytes", device.l2_bytes, known->l2_bytes);
  const auto copy = static_cast<double>(device.copy_bytes_per_s);
  if (copy > known->memory_bytes_per_s()) {
    found.push_back("device.copy_bytes_per_s: " + std::to_string(device.copy_bytes_per_s) +
                    " is more than the memory of " + std::string(known->name) + " moves");
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

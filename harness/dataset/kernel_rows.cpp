#include "harness/dataset/kernel_rows.h"

#include <boost/json.hpp>
#include <map>

#include "harness/dataset/evaluation_columns.h"
#include "harness/dataset/imported.h"
#include "harness/project/candidates.h"
#include "harness/project/recorded.h"
#include "replay/trajectory/event.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

void add_near_duplicate(json::object& row, const Candidate& candidate,
                        NearDuplicates& near_duplicates) {
  const auto near = near_duplicates.add(std::string(row.at("id").as_string()),
                                        min_hash(candidate.program.source));
  if (!near) return;
  row["near_duplicate_of"] = near->of;
  row["near_duplicate_similarity"] = near->similarity;
}

}  // namespace

Result<Ok> put_kernel_rows(const fs::path& root, const std::string& license,
                           NearDuplicates& near_duplicates, RowStream& rows) {
  const Result<std::vector<Candidate>> committed = committed_candidates(root);
  if (!committed) return committed.error();
  std::map<std::string, const Candidate*> by_sha256;
  for (const Candidate& one : *committed) by_sha256[candidate_sha256(one)] = &one;
  for (const fs::path& path : recorded_benches(root)) {
    const Result<Bench> bench = load_record(root, path);
    if (!bench) return bench.error();
    const std::string device = path.parent_path().filename().string();
    for (const BenchRow& one : bench->rows) {
      const auto found = by_sha256.find(one.sha256);
      if (found == by_sha256.end()) continue;  // an earlier version, whose code is not here
      const Candidate& candidate = *found->second;
      json::object row = begin_row("results/" + device + "/" + one.problem + "/" + one.kernel,
                                   one.problem, {one.sha256, one.measured, one.harness});
      row["origin"] = "results";
      row["candidate"] = one.kernel;
      row["search"] = candidate.origin.trajectory;
      row["license"] = license;
      row["device"] = bench->device_name;
      add_problem_columns(row, one.problem);
      add_candidate_columns(row, candidate);
      add_evaluation_columns(row, one);
      add_near_duplicate(row, candidate, near_duplicates);
      rows.put(config::candidates, split_of(one.problem), row);
    }
  }
  return Ok{};
}

Result<Ok> put_imported_rows(const fs::path& root, NearDuplicates& near_duplicates,
                             RowStream& rows) {
  for (const fs::path& path : recorded_files(root, imported_file)) {
    const Result<std::vector<ImportedKernel>> kernels = load_imported(path);
    if (!kernels) return kernels.error();
    for (const ImportedKernel& one : *kernels) {
      json::object row = begin_row("imported/" + one.device() + "/" + one.name,
                                   one.candidate.problem, {canonical_json(one.record)});
      row["origin"] = "imported";
      row["candidate"] = one.name;
      row["license"] = one.license;
      row["from"] = one.from;
      if (!one.program.empty()) row["program"] = one.program;
      for (const char* key : {"device", "toolchain", "measured"}) row[key] = one.record.at(key);
      add_problem_columns(row, one.candidate.problem);
      add_candidate_columns(row, one.candidate);
      add_evaluation_columns(row, one.evaluation);
      add_near_duplicate(row, one.candidate, near_duplicates);
      rows.put(config::candidates, split_of(one.candidate.problem), row);
    }
  }
  return Ok{};
}

}  // namespace rekernel

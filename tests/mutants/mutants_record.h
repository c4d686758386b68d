#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/evaluation.h"
#include "harness/mutant.h"
#include "ops/result.h"

namespace rekernel {

/// What became of one mutant or one honest kernel on one device.
struct Outcome {
  std::string id;
  std::string sha256;  ///< candidate_sha256 of what was judged
  std::string status;
  std::vector<std::string> badges;
  std::string caught_by;  ///< which check spoke; empty if none did
  std::string message;
  bool as_it_must = false;  ///< a mutant that was caught, an honest kernel that passed
};

Outcome mutant_outcome(const Mutant& mutant, const Evaluation& evaluation);
Outcome honest_outcome(const HonestKernel& kernel, const Evaluation& evaluation);

/// results/<gpu>/mutants.json
struct MutantsRecord {
  std::string device_name;
  std::vector<Outcome> mutants;
  std::vector<Outcome> honest;
};

/// Beside the bench file of the same device.
std::filesystem::path mutants_record_path(const std::filesystem::path& root,
                                          const std::string& device_name);
/// Every results/*/mutants.json, sorted.
std::vector<std::filesystem::path> recorded_mutants(const std::filesystem::path& root);
Result<MutantsRecord> load_mutants_record(const std::filesystem::path& path);

/// Takes the new outcomes over into the file of the device, in the order of the tree, and drops
/// those of mutants and kernels that no longer exist.
Result<Ok> update_mutants_record(const std::filesystem::path& root, const MutantsRecord& measured);

/// tests/mutants/README.md with the tables of all records between its markers.
Result<std::string> generated_page(const std::filesystem::path& root);

}  // namespace rekernel

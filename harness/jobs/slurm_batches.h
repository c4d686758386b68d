#pragma once

#include <cstddef>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "harness/jobs/job_folder.h"
#include "ops/result.h"

namespace rekernel {

/// Jobs that were submitted together: the tasks of an array, or one job.
struct SlurmBatch {
  std::string name;               ///< of its jobs, and of its manifest in the folder
  std::string job;                ///< empty while nobody knows whether it was submitted
  std::vector<std::string> keys;  ///< by the tasks' indices
  std::size_t open = 0;           ///< tasks that somebody waits for
};

/// The batches that are in Slurm's queue, with their manifests in the folder, by which whoever
/// comes later finds their jobs.
class SlurmBatches {
 public:
  /// `folder` must outlive it.
  explicit SlurmBatches(const JobFolder& folder) : folder_(folder) {}

  /// Reads the manifests that an earlier run left.
  void read_manifests();
  /// A new batch of a name of its own, as yet without a manifest.
  SlurmBatch& add(std::vector<std::string> keys);
  Result<Ok> write_manifest(const SlurmBatch& batch) const;
  /// Forgets the batch and its manifest.
  void remove(const SlurmBatch& batch);
  /// The same of those that nobody waits for.
  void remove_closed();

  bool empty() const { return batches_.empty(); }
  std::vector<std::string> names() const;
  std::list<SlurmBatch>::iterator begin() { return batches_.begin(); }
  std::list<SlurmBatch>::iterator end() { return batches_.end(); }

 private:
  void remove_manifest(const SlurmBatch& batch) const;

  const JobFolder& folder_;
  std::list<SlurmBatch> batches_;
};

}  // namespace rekernel

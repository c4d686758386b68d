#include "harness/jobs/slurm_batches.h"

#include <chrono>
#include <filesystem>
#include <sstream>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace rekernel {

namespace {

/// One key a line, the lines numbered as the tasks are.
std::string manifest(const std::vector<std::string>& keys) { return joined(keys, "\n") + "\n"; }

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

void SlurmBatches::read_manifests() {
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder_.batch(""), failed), end; !failed && at != end;
       at.increment(failed)) {
    const Result<std::string> text = read_file(at->path());
    if (!text) continue;
    SlurmBatch& batch = batches_.emplace_back();
    batch.name = at->path().filename().string();
    batch.keys = lines_in(*text);
  }
}

SlurmBatch& SlurmBatches::add(std::vector<std::string> keys) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  SlurmBatch& batch = batches_.emplace_back();
  batch.name = "rekernel-" +
               sha256_hex(folder_.token() + manifest(keys) + std::to_string(now)).substr(0, 16);
  batch.keys = std::move(keys);
  return batch;
}

Result<Ok> SlurmBatches::write_manifest(const SlurmBatch& batch) const {
  return write_file_atomically(folder_.batch(batch.name), manifest(batch.keys));
}

void SlurmBatches::remove(const SlurmBatch& batch) {
  remove_manifest(batch);
  batches_.remove_if([&](const SlurmBatch& one) { return &one == &batch; });
}

void SlurmBatches::remove_closed() {
  batches_.remove_if([&](const SlurmBatch& batch) {
    if (batch.open > 0) return false;
    remove_manifest(batch);
    return true;
  });
}

std::vector<std::string> SlurmBatches::names() const {
  std::vector<std::string> names;
  for (const SlurmBatch& batch : batches_) names.push_back(batch.name);
  return names;
}

void SlurmBatches::remove_manifest(const SlurmBatch& batch) const {
  std::error_code ignored;
  std::filesystem::remove(folder_.batch(batch.name), ignored);
}

}  // namespace rekernel

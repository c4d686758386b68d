#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/jobs/slurm.h"
#include "ops/result.h"

namespace rekernel {

/// Asks Slurm by its commands, each of which may take so long.
class SlurmClient {
 public:
  /// `environment`: "NAME=value" each, of the commands; our own if absent.
  SlurmClient(SlurmJobOptions options, std::optional<std::vector<std::string>> environment,
              std::chrono::milliseconds answer);

  /// Whether Slurm's commands are here, and whether it would take such a job, which runs `script`.
  Result<Ok> check(const std::string& script) const;

  /// What a job asks for.
  const SlurmJobOptions& options() const { return options_; }
  /// Submits `tasks` tasks under one name, which all run `script`. Gives the job's number.
  Result<std::string> submit(const SlurmJobOptions& options, const std::string& name,
                             std::size_t tasks, const std::vector<std::string>& excluded_nodes,
                             const std::string& script) const;
  /// The tasks of jobs of these names, also those that ended lately.
  Result<std::vector<SlurmTask>> list(const std::vector<std::string>& names) const;
  Result<Ok> cancel(const std::vector<std::string>& jobs) const;

  /// Says that Slurm will never accept such jobs, and what was requested.
  std::string refusal_text(const std::string& message) const;

 private:
  Result<Ok> check_tool(const char* name) const;
  Result<std::string> ask(const std::vector<std::string>& arguments,
                          const std::string& input = {}) const;

  SlurmJobOptions options_;
  std::optional<std::vector<std::string>> environment_;
  std::chrono::milliseconds answer_;
};

}  // namespace rekernel

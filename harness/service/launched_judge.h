#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "harness/compile/compile.h"
#include "harness/evaluation/launcher.h"
#include "harness/service/answer.h"
#include "harness/service/judge.h"
#include "replay/trajectory/profile_record.h"

namespace rekernel::service {

/// The judge: compiles in children of this process, and evaluates where a launcher does, on this
/// machine's GPUs or as jobs of a cluster.
class LaunchedJudge : public JudgeBackend {
 public:
  struct Options {
    std::shared_ptr<EvaluationLauncher> launcher;
    /// For each place the number of its GPU here; all 0 where a launcher chooses by itself.
    std::vector<int> places;
    std::string no_place;     ///< why there is none
    std::string device_name;  ///< "NVIDIA H200"; empty: what the first evaluation says
    std::string target;       ///< what is compiled for; empty: the candidate's own
    bool is_local = true;     ///< a GPU that failed can be asked whether it is there
    std::string toolchain;
    std::filesystem::path signing_key;  ///< verdicts are signed with it, unless it is empty
    /// For each place, a launcher beside a PyTorch of its own, by which all that is timed is
    /// evaluated then; the error says why there is none now. Asked by one thread at a time. Empty:
    /// this service does not time PyTorch.
    std::vector<std::function<Result<EvaluationLauncher*>()>> with_pytorch;
    /// For each place, what a profiler says of a candidate that passed there; the error is of what
    /// keeps every candidate from being profiled. Empty: this service does not profile.
    std::vector<std::function<Result<ProfileRecord>(const Candidate&)>> profilers;
    /// Told of each evaluation that came to a report.
    std::function<void(const Candidate&, const EvaluateOptions&)> settled;
  };
  /// Fails where there is no compiler.
  static Result<std::unique_ptr<LaunchedJudge>> make(Options options);

  unsigned devices() const override { return static_cast<unsigned>(options_.places.size()); }
  std::string no_device() const override { return options_.no_place; }
  Identity identity(const Task& task) const override;
  Outcome compile(const Task& task) override;
  Outcome judge(const Task& task, int device) override;
  bool answers(int device) override;

 private:
  LaunchedJudge(Options options, const Compiler& compiler);
  std::string target_of(const Task& task) const;
  std::string device_name() const;
  std::vector<std::string> pytorch_references_of(const Task& task) const;
  std::string judge_of(const Task& task) const;
  Outcome verdict(const Task& task, const Evaluation& evaluation, const std::string& device,
                  const std::string& toolchain, const std::vector<LaunchUse>& launches = {},
                  const std::optional<ProfileRecord>& profile = std::nullopt) const;
  std::optional<ProfileRecord> profile(const Task& task, const Candidate& candidate,
                                       const Evaluation& evaluation, int device) const;

  const Options options_;
  const Compiler compiler_;
  mutable std::mutex mutex_;
  std::string seen_device_;
};

}  // namespace rekernel::service

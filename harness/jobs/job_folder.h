#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/report.h"
#include "harness/evaluation/request.h"
#include "ops/result.h"

namespace rekernel {

/// How jobs are made, whatever starts them.
struct JobOptions {
  std::string program;  ///< this program, as nodes find it
  std::string target;   ///< what the search writes code for
  bool mixed_gpus = false;
  int tries = 3;  ///< jobs for one candidate that end without a result
  /// "NAME=value" each: what jobs may see of our environment.
  std::optional<std::vector<std::string>> environment;
  /// After it, nothing is waited for any more. What runs elsewhere goes on.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::function<void(const std::string&)> say;

  bool is_over() const { return deadline && std::chrono::steady_clock::now() >= *deadline; }
};

/// What an evaluation says that was left at its deadline.
inline constexpr const char* left_at_deadline =
    "the deadline came before its result: --resume takes the results that come meanwhile";

/// What came back from where a candidate was evaluated.
struct JobResult {
  std::string node;
  EvaluationReport report;
};

/// The folder through which candidates go to other machines and results come back. It lies on a
/// file system that all of them share; a file appears there whole or not at all, and its first line
/// tells whether it still is.
///
/// A key names a candidate with everything that was asked about it. There is one result for a key,
/// whoever makes it how often.
class JobFolder {
 public:
  /// Makes what is missing of it.
  static Result<JobFolder> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  /// What nodes that share the folder read there.
  const std::string& token() const { return token_; }

  /// Whether something of an earlier use lies there.
  bool is_used() const;
  /// Begins again where nothing is, and where everything was recorded.
  void forget_gpu() const;
  /// Takes this kind of GPU for the first one's.
  Result<Ok> expect_gpu(const std::string& name) const;
  void clear() const;

  /// The key under which nodes find the candidate.
  static std::string key_of(const Candidate& candidate, const EvaluateOptions& options);
  Result<std::string> put_request(const Candidate& candidate, const EvaluateOptions& options) const;
  /// The keys that have a result, as this machine sees the folder now.
  std::set<std::string> results() const;
  /// An error names what is wrong with the file.
  Result<JobResult> read_result(const std::string& key) const;
  void remove_result(const std::string& key) const;
  void remove_request(const std::string& key) const;

  /// Makes this machine ask the server of a network file system what results there are now, also
  /// where it is mounted so that listing them does not (nocto).
  void renew_results() const;
  /// What jobs have left in the folder of logs, read again.
  std::set<std::string> logs() const;

  /// Whether a job has left this word there, which tells that nodes see the folder.
  bool is_seen(const std::string& word) const;
  std::filesystem::path seen() const { return path_ / "seen"; }

  std::filesystem::path batch(const std::string& name) const { return path_ / "batches" / name; }
  std::filesystem::path log(const std::string& name) const { return path_ / "logs" / name; }

  /// Why a result does not count beside the others: it comes from another version of this program,
  /// from a GPU of another target, or of another kind than the first one's (unless `mixed`), which
  /// is remembered in the folder.
  std::optional<std::string> refusal(const JobResult& result, const std::string& target,
                                     bool mixed) const;

 private:
  std::filesystem::path path_;
  std::string token_;
};

/// On the node: evaluates the candidate of a key and writes the result. Does nothing where there is
/// one already.
Result<Ok> run_job(
    const std::filesystem::path& folder, const std::string& key,
    const std::function<EvaluationReport(const Candidate&, const EvaluateOptions&)>& judge);

}  // namespace rekernel

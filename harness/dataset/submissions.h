#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/dataset/imported.h"
#include "harness/evaluation/launcher.h"
#include "ops/result.h"

namespace rekernel {

/// A Python program of a stranger's, which has to be captured before it can be judged.
struct ForeignProgram {
  std::string text;
  std::optional<std::string> function;  ///< which one, if it has several
};

/// Somebody's kernel as their record has it. What that says of its verdict and its time is not
/// read: a row comes of our own.
struct Submission {
  std::string name;  ///< "kernelbench/level1/problem_23/sample_0"
  std::string from;  ///< file, entry, author
  std::string license;
  std::string problem;
  std::variant<Candidate, ForeignProgram> kernel;
};

/// An entry that cannot be judged here, and why.
struct LeftOutEntry {
  std::string name;
  std::string why;
};

struct Submissions {
  std::vector<Submission> kernels;
  std::vector<LeftOutEntry> left_out;
};

/// How strangers' records are read.
struct SubmissionOptions {
  std::string license;                 ///< of what does not name its own; empty: none
  std::optional<std::string> problem;  ///< which of ours the file is for, where it does not tell
};

/// Reads one file or folder:
/// - a data set of ours, or of others in the same columns: its candidates;
/// - KernelBench's samples: JSON with the program as "kernel", "kernel_src" or "custom_kernel", and
///   "level", "problem_id", "sample_id", or those in the path (level1/…/problem_23/sample_0);
/// - FlashInfer's solutions: JSON with "definition", "spec" and "sources", written in Python or
///   Triton in one file;
/// and a file of either with several entries, as an array or a line each. The error names the entry
/// and the key.
Result<Submissions> read_submissions(const std::filesystem::path& path,
                                     const SubmissionOptions& options);

/// Makes a candidate of a program: runs it on a GPU.
using CaptureProgram =
    std::function<Result<Candidate>(const ForeignProgram& program, const std::string& problem)>;

/// Who judges submissions.
struct SubmissionJudge {
  EvaluationLauncher& launcher;
  CaptureProgram capture;
  int device = 0;           ///< number of the GPU
  std::string device_name;  ///< its name
  std::string toolchain;    ///< compiler, libraries, driver
};

/// The verdict on a submission, as imported.jsonl keeps it. A program that cannot be captured is
/// `kept_out`; a failure of the set-up is an error.
struct JudgedSubmission {
  std::optional<ImportedKernel> kernel;
  std::string kept_out;
};
Result<JudgedSubmission> judge_submission(const Submission& submission, SubmissionJudge& judge);

}  // namespace rekernel

#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/candidate/status.h"
#include "harness/compile/compile.h"
#include "harness/terminal/tables.h"

namespace rekernel {

/// A candidate compiled for one target.
struct CompileCheck {
  std::string candidate;  ///< "softmax/online_two_pass"
  std::string sizes;      ///< "rows 1, columns 300"; empty: the problem's own
  std::string target;     ///< "sm_89"
  std::string error;      ///< empty when it compiled and every launch fits its kernel
  std::string skipped;    ///< why it was not compiled; empty if it was
  std::vector<KernelResources> resources;
  std::string warnings;  ///< of the compiler, which compiled it all the same
  /// As the judge would call it; `passed` where nothing failed.
  Status status = Status::passed;
};

/// What several targets have in common: the same error or the same warnings of one candidate.
struct CompilerWords {
  std::string candidate;  ///< with its sizes, where they are not the problem's own
  std::vector<std::string> targets;
  std::string text;  ///< of the first of the targets, in full
  Status status = Status::passed;

  /// "softmax/mine for sm_80, sm_89"
  std::string where() const;
};

/// Each error once, in the checks' order.
std::vector<CompilerWords> compile_failures(const std::vector<CompileCheck>& checks);
/// The same of warnings.
std::vector<CompilerWords> compile_warnings(const std::vector<CompileCheck>& checks);

struct CompileJob {
  const Candidate* candidate = nullptr;
  std::string target;
};

/// Compiles on all cores, in a child each, with its progress on a terminal; results in the jobs'
/// order.
std::vector<CompileCheck> compile_jobs(const Compiler& compiler,
                                       const std::vector<CompileJob>& jobs);

/// The same of every candidate for all its targets; results in the candidates' order.
std::vector<CompileCheck> compile_all(const Compiler& compiler,
                                      const std::vector<Candidate>& candidates);

/// Candidates in axes at some of their problem's other sizes, equal in every run: whether their
/// plans say something there that is within limits, and compile for the lowest target that the
/// compiler knows. The others have no checks.
std::vector<CompileCheck> check_other_sizes(const Compiler& compiler,
                                            const std::vector<Candidate>& candidates);
/// "softmax/mine: its plan is in axes, and also good for sm_80 at rows 1, columns 1; …", a line for
/// each candidate of such checks that is good everywhere.
std::string other_sizes_text(const std::vector<CompileCheck>& checks);

/// Whether nothing failed. What was skipped did not fail.
bool all_compile(const std::vector<CompileCheck>& checks);

/// What did not compile, and why.
std::string failures_text(const std::vector<CompileCheck>& checks);

/// One line a kernel: registers, shared memory, stack, spills.
Table compile_table(const std::vector<CompileCheck>& checks);
/// The table, and under it what did not compile, warnings and skipped_text(); in CSV the table
/// alone, with a column of errors.
std::string compile_text(const std::vector<CompileCheck>& checks, const TableFormat& format);
boost::json::array compile_json(const std::vector<CompileCheck>& checks);

/// A line for every reason why something was not compiled: an older NVRTC does not know the newest
/// targets.
std::string skipped_text(const std::vector<CompileCheck>& checks);

}  // namespace rekernel

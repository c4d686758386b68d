#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/explain/advice.h"
#include "harness/explain/launch_use.h"
#include "harness/explain/subject.h"
#include "harness/project/compile_all.h"
#include "harness/terminal/tables.h"

namespace rekernel {

/// Everything that is known of a candidate, recorded or found out now.
struct Explanation {
  ExplainedCandidate subject;
  std::vector<CompileCheck> checks;  ///< for every target; empty without a compiler or a candidate
  std::string not_compiled;          ///< why there are none; empty if there are
  std::vector<LaunchUse> uses;

  /// Whether the candidate would be refused, by what was found out now or by a record.
  bool refused() const;
};

/// Compiles the subject's candidate, if it has one, for every target.
Explanation explain(ExplainedCandidate subject, const Result<Compiler>& compiler);

/// What was found wrong, and what to change: each advice once.
std::vector<const Advice*> advice_in(const Explanation& explanation);

std::string explanation_text(const Explanation& explanation, const TableFormat& format);
boost::json::object to_json(const Explanation& explanation);

}  // namespace rekernel

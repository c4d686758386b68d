#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rekernel {

/// What stands in every place of an export that nobody judged.
inline constexpr const char* not_judged = "not judged";

/// What is recorded of exactly a source and its plan on one device, as people read it.
struct JudgedOn {
  std::string device;                ///< "NVIDIA H200 (sm 9.0)"
  std::string verdict;               ///< "passed"
  std::string badges;                ///< "strict, robust"; "none"
  std::string errors;                ///< beside their bounds
  std::string time;                  ///< with its 95% interval
  std::string percent_of_reference;  ///< with its 95% interval
  std::string driver;                ///< and compiler and libraries, with versions
  std::string judge;                 ///< its digest; and that it is an older one, where it is
  std::string measured;              ///< YYYY-MM-DD
  std::string measured_by;           ///< a signer; "unsigned"
};

/// All that is recorded of them; the first device is the one most like what the export is for.
struct RecordedJudgement {
  std::string tolerance;  ///< the problem's class, and what it bounds
  std::vector<JudgedOn> devices;
};

/// A name as programs have it ("percent_of_reference") and its text.
using JudgementFact = std::pair<std::string, std::string>;
/// Names and texts, in the order in which they are shown; each text is `not_judged` without
/// anything recorded.
std::vector<JudgementFact> facts_of(const JudgedOn& judged);
JudgedOn nothing_recorded();

/// "passed (strict, robust) on NVIDIA H200 (sm 9.0)"; "not judged".
std::string judgement_in_short(const RecordedJudgement& judgement);

/// A literal of C++, Python or TOML: in double quotes, on one line.
std::string quoted(const std::string& text);
/// The same over several lines, as C++ and Python join adjacent literals; lines after the first
/// begin with `indent` blanks.
std::string quoted_lines_of(const std::string& text, std::size_t indent);

/// The facts as lines of a comment in C++, with the other devices in a line each.
std::string judgement_comment(const RecordedJudgement& judgement);
/// As constants of C++: inline constexpr char NAME[] = "…";
std::string judgement_constants(const std::vector<JudgementFact>& kernel,
                                const RecordedJudgement& judgement);
/// As a list of dictionaries in Python, one for each device.
std::string judgement_list(const std::vector<JudgementFact>& kernel,
                           const RecordedJudgement& judgement);
/// As keys of TOML.
std::string judgement_keys(const std::vector<JudgementFact>& kernel,
                           const RecordedJudgement& judgement);
/// As a Markdown table with a column for each device.
std::string judgement_table(const RecordedJudgement& judgement);

}  // namespace rekernel

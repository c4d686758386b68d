#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/report/filters.h"
#include "harness/terminal/arguments.h"
#include "ops/result.h"

// What `rekernel results` does, an action each: `what` is named on the command line after it. They
// return the exit status.

namespace rekernel {

/// Every record of `root`, whose references are all known.
Result<PlacedBenches> all_recorded(const std::filesystem::path& root);

/// Everything is read and judged before anything is written.
int merge_results(const std::filesystem::path& root, const std::vector<std::string>& files,
                  const std::vector<std::string>& replace);

int show_best(const std::filesystem::path& root, const std::vector<std::string>& problems,
              const ParsedArguments& parsed);
int compare_results(const std::filesystem::path& root, const std::vector<std::string>& names,
                    const ParsedArguments& parsed);
/// The sentence that a paper can say of each row of a kernel, and what it cites.
int cite_results(const std::filesystem::path& root, const std::vector<std::string>& names,
                 const ParsedArguments& parsed);

/// Nothing in a row tells on which machine it was measured: who signs names what they measured.
/// Everything is looked up before anything is signed.
int sign_results(const std::filesystem::path& root, const std::vector<std::string>& names,
                 const ParsedArguments& parsed);

}  // namespace rekernel

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/report/study_results.h"

namespace rekernel {

/// A study whose definition lies in trajectories/NAME/study.json, as far as its searches are there.
struct StudyOnRecord {
  std::string name;
  std::string file;                     ///< of the definition, from the root
  std::size_t problems = 0;             ///< that it is of
  std::vector<StudiedSearch> searches;  ///< those that have come to their end, in its order
  std::vector<std::string> unreadable;  ///< what is wrong with files of it, a line each
};

/// All studies of a project, by name; those of which no search has come to its end are left out.
Result<std::vector<StudyOnRecord>> studies_on_record(const std::filesystem::path& root);

/// README's section on each: a picture, a table and a few sentences; empty without a study.
std::string studies_markdown(const std::vector<StudyOnRecord>& studies);

}  // namespace rekernel

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/result.h"
#include "replay/search/search_file.h"

namespace rekernel {

/// Searches that answer a question together: one for each problem of a list, with the same
/// settings, all of it fixed before anything is tried. Some, drawn by lot, show profiles in their
/// prompts.
struct Study {
  std::string name;                   ///< "ten"
  std::vector<std::string> problems;  ///< in the order in which they are searched
  std::vector<std::string> profiled;  ///< those whose prompts show profiles, as drawn
  SearchFile common;                  ///< what all searches begin with

  /// "ten-gelu": of the search for a problem, and of its trajectory.
  std::string search_name(std::string_view problem) const {
    return name + "-" + std::string(problem);
  }
  bool is_profiled(std::string_view problem) const;
};

/// What the lot is drawn from: SHA-256 of the problems, each followed by a newline.
std::string seed_of_lot(const std::vector<std::string>& problems);

/// The lot: the `count` problems whose SHA-256 of "SEED PROBLEM" is the least, as hexadecimal text,
/// in the order of the list.
std::vector<std::string> drawn(const std::vector<std::string>& problems, std::size_t count);

/// The file of `search --study`: {"schema": 1, "name", "problems", "profiled", "search": as a
/// settings file without a problem}. Errors also where a problem is unknown or is there twice, and
/// where "profiled" is not what the lot drew.
Result<Study> load_study(const std::filesystem::path& path);

/// What the search of this name begins with; nothing if the study has no such search.
std::optional<SearchFile> search_of(const Study& study, std::string_view search_name);

}  // namespace rekernel

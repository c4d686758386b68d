#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/trajectory/header.h"

namespace rekernel {

/// A kernel for the library, as a search file names it.
struct LibraryEntry {
  std::string name;
  std::string note;
  std::string folder;  ///< of a candidate, of whatever problem; or
  std::string source;  ///< the path of a .cu file
};

/// What a person specifies before a search begins: the file of `search --settings`. Every key may
/// be absent: "problem", "settings" (as Settings), "target" ("h200", "l40s") or "device"
/// (DeviceFacts), "seeds" (candidate folders), "slow_seed", "library" ({"name", "note", "folder" or
/// "source"}), "templates"
/// ({"ideas", "kernel"}), "replies", "notes", "published". Paths count from the project's root.
struct SearchFile {
  std::string problem;
  Settings settings{.tries = usual_tries};
  std::optional<DeviceFacts> device;
  std::vector<std::string> seeds;
  bool slow_seed = false;  ///< the candidate that `rekernel new` makes is a seed, the first
  std::vector<LibraryEntry> library;
  std::optional<Templates> templates;
  std::string replies;
  std::string notes;
  std::optional<PublishedRun> published;
};

Result<SearchFile> load_search_file(const std::filesystem::path& path);
/// The same object as part of another file. Errors land in the reader.
SearchFile read_search_file(JsonReader& reader);

/// The header of a new search: reads the kernels that the file names and renders the fixed texts.
Result<Header> new_header(const std::string& name, const SearchFile& file,
                          const std::filesystem::path& root,
                          const std::map<std::string, std::string>& toolchain);

/// Nothing if a recorded search is the one that `wanted` would begin, whatever the toolchain of the
/// day; else the name of the first member that differs.
std::optional<std::string> first_difference(const Header& recorded, const Header& wanted);

}  // namespace rekernel

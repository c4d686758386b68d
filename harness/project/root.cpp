#include "harness/project/root.h"

#include <iostream>

namespace rekernel {

std::filesystem::path project_around() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (fs::path folder = fs::current_path(ignored); !folder.empty();
       folder = folder.parent_path()) {
    if (fs::is_directory(folder / "generated", ignored) &&
        fs::is_directory(folder / "results", ignored)) {
      return folder;
    }
    if (folder == folder.root_path()) break;
  }
  return {};
}

std::filesystem::path project_root() {
  std::filesystem::path around = project_around();
  if (!around.empty()) return around;
  static const bool said = [] {
    std::cerr << "rekernel: the working directory is not in a project: using "
              << REKERNEL_SOURCE_DIR << ", which this program was built from\n";
    return true;
  }();
  static_cast<void>(said);
  return REKERNEL_SOURCE_DIR;
}

Result<std::filesystem::path> own_project() {
  std::filesystem::path around = project_around();
  if (!around.empty()) return around;
  return Error{
      "the working directory is not in a project, and nothing is written elsewhere: expected a "
      "folder "
      "at or above it that holds generated/ and results/"};
}

}  // namespace rekernel

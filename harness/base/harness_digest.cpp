#include "harness/base/harness_digest.h"

#include <algorithm>
#include <array>
#include <vector>

#include "harness/base/files.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t shown_digits = 16;
// As in harness/cmake/harness_digest.cmake; a test compares the two.
constexpr std::array folders = {"ops",
                                "reference",
                                "harness/base",
                                "harness/gpu",
                                "harness/process",
                                "harness/candidate",
                                "harness/compile",
                                "harness/device",
                                "harness/evaluation"};
constexpr std::array endings = {".cpp", ".h", ".py"};

}  // namespace

std::string harness_digest() {
  return
#include "harness_digest.inc"
      ;
}

Result<std::string> harness_digest_of(const fs::path& root) {
  std::vector<std::string> files;
  for (const char* folder : folders) {
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(root / folder, failure)) {
      const bool judging = std::any_of(endings.begin(), endings.end(), [&](const char* ending) {
        return entry.path().extension() == ending;
      });
      if (judging) files.push_back((fs::path(folder) / entry.path().filename()).string());
    }
    if (failure) return Error{(root / folder).string() + ": cannot be read: " + failure.message()};
  }
  std::sort(files.begin(), files.end());
  std::string lines;
  for (const std::string& file : files) {
    const Result<std::string> content = read_file(root / file);
    if (!content) return content.error();
    lines += sha256_hex(*content) + "  " + file + "\n";
  }
  return sha256_hex(lines).substr(0, shown_digits);
}

}  // namespace rekernel

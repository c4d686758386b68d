#include "harness/report/generated_parts.h"

#include <array>

#include "harness/audit/errors.h"
#include "harness/audit/gallery.h"
#include "harness/audit/mutants_page.h"
#include "harness/base/files.h"
#include "harness/records/noise.h"
#include "harness/report/citation.h"
#include "harness/report/readme.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

struct GeneratedPage {
  const char* path;
  Result<std::string> (*make)(const fs::path& root);
  const char* source;  ///< what it is made of
};

constexpr std::array pages = {
    GeneratedPage{"README.md", generated_readme, "results/ and trajectories/"},
    GeneratedPage{"tests/adversarial/README.md", gallery_page, "the fixtures"},
    GeneratedPage{"harness/TIMING.md", timing_page, "results/"},
    GeneratedPage{"ops/TOLERANCES.md", tolerances_page, "results/"},
    GeneratedPage{"results/REPORTING.md", reporting_page, "results/"},
    GeneratedPage{"tests/mutants/README.md", mutants_page, "results/"},
};

Result<Ok> compare(const fs::path& root, const GeneratedPage& page,
                   std::vector<GeneratedComplaint>& complaints) {
  const Result<std::string> expected = page.make(root);
  if (!expected) return expected.error();
  const Result<std::string> present = read_file(root / page.path);
  if (!present) return present.error();
  if (*expected != *present) {
    complaints.push_back({page.path, std::string("its generated part is not that of ") +
                                         page.source + "; run `rekernel report --readme`"});
  }
  return Ok{};
}

}  // namespace

Result<std::map<std::string, std::string>> generated_pages(const fs::path& root) {
  std::map<std::string, std::string> made;
  for (const GeneratedPage& page : pages) {
    Result<std::string> text = page.make(root);
    if (!text) return text.error();
    made[page.path] = std::move(*text);
  }
  return made;
}

Result<std::vector<GeneratedComplaint>> stale_pages(const fs::path& root) {
  std::vector<GeneratedComplaint> complaints;
  for (const GeneratedPage& page : pages) {
    if (Result<Ok> compared = compare(root, page, complaints); !compared) return compared.error();
  }
  return complaints;
}

Result<std::vector<GeneratedComplaint>> stale_readme(const fs::path& root) {
  std::vector<GeneratedComplaint> complaints;
  if (Result<Ok> compared = compare(root, pages.front(), complaints); !compared) {
    return compared.error();
  }
  return complaints;
}

}  // namespace rekernel

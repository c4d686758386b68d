#include "replay/search/search_file.h"

#include <boost/json.hpp>

#include "property.h"
#include "replay/trajectory/event.h"
#include "targets.h"
#include "tests/replay/fakes.h"

namespace rekernel::fuzz {

void fuzz_search_file(std::string_view bytes) {
  static const TemporaryFolder folder;
  const std::filesystem::path path = folder / "settings.json";
  testing::write_text(path, std::string(bytes));
  Result<SearchFile> file = load_search_file(path);
  if (!file) return require_error(file.error(), path.string());

  // Paths of this machine are none of a fuzzer's business.
  file->seeds.clear();
  file->library.clear();
  const Result<Header> header = new_header("fuzz", *file, folder.path(), {});
  if (!header) return require_error(header.error(), "search fuzz: ");
  const std::string text = canonical_json(to_json(*header));
  const Result<Header> again = header_from_json(to_json(*header), "header");
  require(again.ok(), "what is written is accepted", again.ok() ? "" : again.error().message);
  require(canonical_json(to_json(*again)) == text, "a header is written the same again", text);
  require(!first_difference(*header, *again), "a search is equal to itself");
}

}  // namespace rekernel::fuzz

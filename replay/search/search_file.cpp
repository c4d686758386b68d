#include "replay/search/search_file.h"

#include <boost/json.hpp>

#include "harness/base/files.h"
#include "harness/candidate/candidate.h"
#include "harness/candidate/known_problem.h"
#include "replay/search/fixed_texts.h"
#include "replay/search/prompt.h"
#include "replay/trajectory/event.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t max_source_bytes = std::size_t{1} << 20;

LibraryEntry read_library_entry(JsonReader reader) {
  LibraryEntry entry;
  entry.name = reader.required("name").identifier();
  if (auto note = reader.optional("note")) entry.note = note->string(max_idea_bytes);
  if (auto folder = reader.optional("folder")) entry.folder = folder->string(1024);
  if (auto source = reader.optional("source")) entry.source = source->string(1024);
  if (entry.folder.empty() == entry.source.empty()) {
    reader.fail("expected either \"folder\", a candidate's, or \"source\", a .cu file");
  }
  reader.no_other_keys();
  return entry;
}

std::optional<DeviceFacts> read_device(JsonReader& reader) {
  if (auto facts = reader.optional("device")) return read_device_facts(*facts);
  auto target = reader.optional("target");
  if (!target) return std::nullopt;
  const std::optional<DeviceFacts> known = known_device(target->string(64));
  if (!known) target->expect("\"h200\" or \"l40s\"; other GPUs need \"device\"");
  return known;
}

Result<LibraryKernel> load_library_kernel(const LibraryEntry& entry, const fs::path& root) {
  LibraryKernel kernel{entry.name, entry.note, "", ""};
  if (entry.folder.empty()) {
    Result<std::string> source = read_file(root / entry.source, max_source_bytes);
    if (!source) return source.error();
    if (!is_utf8(*source)) return Error{entry.source + ": not UTF-8 text"};
    kernel.source = std::move(*source);
    return kernel;
  }
  Result<Candidate> candidate = load_candidate(root / entry.folder);
  if (!candidate) return candidate.error();
  kernel.plan = candidate_json(*candidate);
  kernel.source = candidate->program.source;
  if (kernel.note.empty()) kernel.note = candidate->idea;
  return kernel;
}

}  // namespace

SearchFile read_search_file(JsonReader& reader) {
  SearchFile file;
  if (auto problem = reader.optional("problem")) file.problem = problem->string(64);
  if (auto settings = reader.optional("settings")) {
    file.settings = read_settings(*settings);
    if (!settings->has("tries")) file.settings.tries = usual_tries;
  }
  file.device = read_device(reader);
  if (auto seeds = reader.optional("seeds")) file.seeds = seeds->strings(16, 1024);
  if (auto slow = reader.optional("slow_seed")) file.slow_seed = slow->boolean();
  if (auto library = reader.optional("library")) {
    for (JsonReader& entry : library->array(0, 64)) {
      file.library.push_back(read_library_entry(entry));
    }
  }
  if (auto templates = reader.optional("templates")) {
    file.templates =
        Templates{templates->required("ideas").string(), templates->required("kernel").string()};
    templates->no_other_keys();
  }
  if (auto replies = reader.optional("replies")) file.replies = replies->string(4000);
  if (auto notes = reader.optional("notes")) file.notes = notes->string();
  if (auto published = reader.optional("published")) {
    file.published = read_published_run(*published);
  }
  reader.no_other_keys();
  return file;
}

Result<SearchFile> load_search_file(const fs::path& path) {
  const Result<json::value> value = read_json_file(path);
  if (!value) return value.error();
  JsonReader reader(path.string(), *value);
  SearchFile file = read_search_file(reader);
  if (auto error = reader.error()) return *error;
  return file;
}

Result<Header> new_header(const std::string& name, const SearchFile& file, const fs::path& root,
                          const std::map<std::string, std::string>& toolchain) {
  const std::string where = "search " + name;
  const Result<const Problem*> known = known_problem(file.problem);
  if (!known) return Error{where + ": " + known.error().message};
  const Problem* problem = *known;
  Header header;
  header.name = name;
  header.problem = file.problem;
  header.settings = file.settings;
  header.templates = file.templates.value_or(default_templates());
  header.device = file.device.value_or(*known_device("h200"));
  header.texts = {problem_text(*problem, file.settings.references), device_text(header.device),
                  format_text(header.device.target)};
  header.toolchain = toolchain;
  header.replies = file.replies;
  header.notes = file.notes;
  header.published = file.published;
  if (file.slow_seed) {
    const Candidate seed = scaffold_candidate(*problem, "slow");
    header.seeds.push_back({candidate_json(seed), seed.program.source});
  }
  for (const std::string& folder : file.seeds) {
    Result<Candidate> seed = load_candidate(root / folder);
    if (!seed) return seed.error();
    if (seed->problem != header.problem) {
      return Error{where + ": the seed " + folder + " is for " + seed->problem};
    }
    header.seeds.push_back({candidate_json(*seed), seed->program.source});
  }
  for (const LibraryEntry& entry : file.library) {
    Result<LibraryKernel> kernel = load_library_kernel(entry, root);
    if (!kernel) return kernel.error();
    header.library.push_back(std::move(*kernel));
  }
  // Through the reader, so that what is written is what a reader accepts.
  return header_from_json(to_json(header), where);
}

std::optional<std::string> first_difference(const Header& recorded, const Header& wanted) {
  const json::object ours = to_json(recorded);
  const json::object theirs = to_json(wanted);
  for (const auto& [key, value] : theirs) {
    if (key == "toolchain") continue;
    const json::value* own = ours.if_contains(key);
    if (!own) return std::string(key);
    if (*own == value) continue;
    if (own->is_object() && value.is_object()) {
      for (const auto& [inner, member] : value.get_object()) {
        const json::value* inner_own = own->get_object().if_contains(inner);
        if (!inner_own || *inner_own != member) return std::string(key) + "." + std::string(inner);
      }
    }
    return std::string(key);
  }
  return std::nullopt;
}

}  // namespace rekernel

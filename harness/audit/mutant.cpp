#include "harness/audit/mutant.h"

#include <algorithm>
#include <stdexcept>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/candidate/code.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

template <class T>
T or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

boost::json::value read_json(const fs::path& path) {
  return or_throw(parse_json(or_throw(read_file(path)), path.string()));
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  if (!fs::exists(folder)) return paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

Status read_expected_status(JsonReader& reader) {
  const auto status = status_from_string(reader.string());
  if (!status) reader.expect("a status");
  return status.value_or(Status::crashed);
}

/// Either statuses other than `passed`, or `passed` with at least one badge refused.
void read_expectation(JsonReader& reader, Mutant& mutant) {
  if (auto badges = reader.optional("without_badges"))
    mutant.refused_badges = badges_from_json(*badges);
  if (auto status = reader.optional("status")) {
    if (status->is_string()) {
      mutant.expected = {read_expected_status(*status)};
    } else {
      for (JsonReader& one : status->array(1)) mutant.expected.push_back(read_expected_status(one));
    }
  } else {
    mutant.expected = {Status::passed};
  }
  const bool may_pass = std::count(mutant.expected.begin(), mutant.expected.end(), Status::passed);
  if (may_pass && mutant.refused_badges.empty()) {
    reader.expect("a status other than passed, or without_badges");
  }
}

Mutant read_mutant(JsonReader reader, const fs::path& base, const std::string& prefix) {
  Mutant mutant;
  mutant.id = prefix + reader.required("name").identifier();
  mutant.what = reader.required("what").string();
  mutant.base = base;
  if (auto replace = reader.optional("replace")) {
    for (JsonReader& pair : replace->array(1)) {
      std::vector<JsonReader> texts = pair.array(2, 2);
      if (texts.size() == 2) {
        mutant.replacements.emplace_back(texts[0].string(), texts[1].string());
      }
    }
  }
  if (auto plan = reader.optional("plan")) mutant.plan_patch = plan->raw();
  read_expectation(reader, mutant);
  reader.no_other_keys();
  return mutant;
}

void read_mutants(const fs::path& root, const fs::path& path, std::vector<Mutant>& mutants) {
  const boost::json::value json = read_json(path);
  JsonReader reader(path.string(), json);
  const fs::path base = root / reader.required("base").string();
  const std::string prefix =
      path.parent_path().filename().string() + "/" + path.stem().string() + "/";
  for (JsonReader& one : reader.required("mutants").array(1)) {
    mutants.push_back(read_mutant(one, base, prefix));
  }
  reader.no_other_keys();
  if (auto error = reader.error()) throw std::runtime_error(error->message);
}

/// RFC 7386: objects are merged key by key, null takes a key away, everything else replaces.
void merge_patch(boost::json::value& target, const boost::json::value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = boost::json::object();
  for (const auto& [key, value] : patch.get_object()) {
    if (value.is_null()) {
      target.get_object().erase(key);
    } else {
      merge_patch(target.get_object()[key], value);
    }
  }
}

Result<Ok> replace_once(std::string& text, const std::string& old_text,
                        const std::string& new_text) {
  const std::size_t at = text.find(old_text);
  if (at == std::string::npos)
    return Error{code_file(Language::cuda) + ": does not contain '" + old_text + "'"};
  if (text.find(old_text, at + 1) != std::string::npos) {
    return Error{code_file(Language::cuda) + ": contains '" + old_text +
                 "' more than once: expected once"};
  }
  text.replace(at, old_text.size(), new_text);
  return Ok{};
}

}  // namespace

std::vector<Mutant> all_mutants(const fs::path& root) {
  std::vector<Mutant> mutants;
  for (const fs::path& folder : sorted_entries(root / "tests/mutants")) {
    if (!fs::is_directory(folder)) continue;
    for (const fs::path& path : sorted_entries(folder)) read_mutants(root, path, mutants);
  }
  return mutants;
}

std::vector<HonestKernel> all_honest_kernels(const fs::path& root) {
  std::vector<HonestKernel> kernels;
  for (const fs::path& problem : sorted_entries(root / "tests/honest")) {
    if (!fs::is_directory(problem)) continue;
    for (const fs::path& folder : sorted_entries(problem)) {
      const fs::path path = folder / "expected.json";
      const boost::json::value json = read_json(path);
      JsonReader reader(path.string(), json);
      if (reader.required("status").string() != "passed") reader.fail("expected status passed");
      HonestKernel kernel;
      kernel.id = problem.filename().string() + "/" + folder.filename().string();
      kernel.folder = folder;
      if (auto badges = reader.optional("badges")) kernel.badges = badges_from_json(*badges);
      kernels.push_back(std::move(kernel));
      reader.no_other_keys();
      if (auto error = reader.error()) throw std::runtime_error(error->message);
    }
  }
  return kernels;
}

Result<MutatedFiles> mutate(const Mutant& mutant) {
  Result<std::string> source = read_file(mutant.base / code_file(Language::cuda));
  if (!source) return source.error();
  Result<std::string> plan_text = read_file(mutant.base / "kernel.json");
  if (!plan_text) return plan_text.error();
  Result<boost::json::value> plan = parse_json(*plan_text, "kernel.json");
  if (!plan) return plan.error();

  const std::string honest_source = *source;
  const boost::json::value honest_plan = *plan;
  for (const auto& [old_text, new_text] : mutant.replacements) {
    if (Result<Ok> replaced = replace_once(*source, old_text, new_text); !replaced) {
      return replaced.error();
    }
  }
  if (!mutant.plan_patch.is_null()) merge_patch(*plan, mutant.plan_patch);
  if (*source == honest_source && *plan == honest_plan) {
    return Error{"the same as the honest kernel"};
  }
  return MutatedFiles{std::move(*source), pretty_json(*plan)};
}

Result<Candidate> mutated_candidate(const Mutant& mutant) {
  Result<MutatedFiles> files = mutate(mutant);
  if (!files) return files.error();
  return parse_candidate(files->plan, std::move(files->source), mutant.id);
}

}  // namespace rekernel

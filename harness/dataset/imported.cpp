#include "harness/dataset/imported.h"

#include <fcntl.h>

#include <boost/json.hpp>
#include <set>
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/dataset/journal.h"
#include "harness/dataset/licenses.h"
#include "harness/dataset/modules.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/outcome.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

Result<ImportedKernel> read_line(const std::string& line, const std::string& where) {
  const Result<json::value> value = parse_json(line, where);
  if (!value) return value.error();
  JsonReader reader(where, *value);
  reader.required("schema").integer(1, 1);
  ImportedKernel kernel;
  kernel.name = reader.required("name").string();
  kernel.from = reader.required("from").string();
  JsonReader license = reader.required("license");
  kernel.license = license.string();
  if (!find_license(kernel.license)) license.expect("one of " + known_licenses());
  const std::string plan = reader.required("plan").string(max_plan_bytes);
  kernel.program = reader.required("program").string(max_source_bytes);
  std::vector<Code> modules = modules_from_columns(reader.required("modules"));
  if (auto source = reader.optional("source")) {
    modules.push_back({Language::cuda, source->string(max_source_bytes)});
  }
  JsonReader record = reader.required("evaluation");
  for (const char* key : {"device", "toolchain", "measured", "harness"}) {
    if (record.required(key).string().empty()) record.required(key).expect("a text");
  }
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  Result<Candidate> candidate = parse_candidate(plan, std::move(modules), where);
  if (!candidate) return candidate.error();
  kernel.candidate = std::move(*candidate);
  kernel.record = record.raw().as_object();
  Result<Evaluation> evaluation = evaluation_from_record(kernel.record, where);
  if (!evaluation) return evaluation.error();
  if (evaluation->sha256 != candidate_sha256(kernel.candidate)) {
    return Error{where + ": evaluation.sha256: is not of this plan and source"};
  }
  kernel.evaluation = std::move(*evaluation);
  return kernel;
}

}  // namespace

std::string ImportedKernel::device() const { return device_in(record); }

json::object to_json(const ImportedKernel& kernel) {
  json::object line{{"schema", 1},
                    {"name", kernel.name},
                    {"from", kernel.from},
                    {"license", kernel.license},
                    {"program", kernel.program},
                    {"plan", candidate_json(kernel.candidate)},
                    {"modules", module_columns(kernel.candidate.program)},
                    {"evaluation", kernel.record}};
  // One source in CUDA C++, as most are.
  if (line.at("modules").as_array().empty()) line["source"] = kernel.candidate.program.source;
  return line;
}

Result<std::vector<ImportedKernel>> load_imported(const fs::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  std::vector<ImportedKernel> kernels;
  std::set<std::string> names;
  std::istringstream lines(*text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = path.string() + ": line " + std::to_string(++number);
    Result<ImportedKernel> kernel = read_line(line, where);
    if (!kernel) return kernel.error();
    if (!names.insert(kernel->name).second) {
      return Error{where + ": name: \"" + one_line(kernel->name, 100) + "\" stands there twice"};
    }
    kernels.push_back(std::move(*kernel));
  }
  return kernels;
}

Result<Ok> append_imported(const fs::path& path, const ImportedKernel& kernel) {
  return append_line(path, canonical_json(to_json(kernel)));
}

}  // namespace rekernel

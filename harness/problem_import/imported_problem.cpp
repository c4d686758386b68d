#include "harness/problem_import/imported_problem.h"

#include <boost/json.hpp>
#include <vector>

#include "harness/base/cache.h"
#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/measuring/references.h"
#include "harness/problem_import/problem_import.h"

namespace rekernel {

namespace {

constexpr std::size_t max_text_bytes = 1u << 20;
constexpr std::size_t max_tensor_bytes = std::size_t{1} << 30;
constexpr std::size_t max_problem_bytes = 4u << 20;

/// All that a workload says.
Result<Ok> add_fields(const Workload& workload, std::vector<std::string>& fields) {
  for (const auto& [name, size] : workload.axes) {
    fields.insert(fields.end(), {name, std::to_string(size)});
  }
  for (const auto& [name, value] : workload.scalars) {
    fields.insert(fields.end(), {name, boost::json::serialize(boost::json::value(value))});
  }
  for (const auto& [name, tensor] : workload.tensors) {
    const Result<std::string> bytes = read_file(tensor.file, max_tensor_bytes);
    if (!bytes) return bytes.error();
    fields.insert(fields.end(), {name, tensor.key, *bytes});
  }
  return Ok{};
}

}  // namespace

Result<std::string> imported_problem_text(const std::filesystem::path& file,
                                          const std::function<void()>& begins) {
  const Result<std::string> program = read_file(file, max_text_bytes);
  if (!program) return program.error();
  const std::string id = id_after(file);
  ImportRequest request;
  request.file = file;
  request.id = id;
  std::vector<std::string> fields = {import_digest(), id, *program};
  const std::filesystem::path workloads =
      file.extension() == ".json" ? workloads_of(file) : std::filesystem::path();
  if (!workloads.empty()) {
    auto workload = workload_for(*program, file, workloads);
    if (!workload) return workload.error();
    request.workload = *std::move(workload);
    if (auto added = add_fields(request.workload, fields); !added) return added.error();
  }
  const std::string entry = "imports/" + sha256_hex(joined_fields(fields));
  Result<std::string> text = recall(entry, max_problem_bytes);
  if (text) return text;
  if (!pytorch_is_installed()) {
    return Error{file.string() + ": a program: expected a python3 that can import torch"};
  }
  begins();
  Result<ImportedProblem> made = import_problem(request);
  if (!made) return made.error();
  // Without a cache it works as well, only slower.
  (void)remember({entry, made->problem.text}).ok();
  return made->problem.text;
}

}  // namespace rekernel

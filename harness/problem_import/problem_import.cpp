#include "harness/problem_import/problem_import.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/problems/catalog.h"
#include "harness/problems/problem_file.h"
#include "harness/problems/sizes.h"
#include "harness/process/sandbox.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

/// One after the other, they are one program.
constexpr const char* script_parts[] = {
#include "import_notation.inc"
    ,
#include "import_operators.inc"
    ,
#include "import_operators_shapes.inc"
    ,
#include "import_operators_sums.inc"
    ,
#include "import_operators_nn.inc"
    ,
#include "import_operators_losses.inc"
    ,
#include "import_translate.inc"
    ,
#include "import_assembly.inc"
    ,
#include "import_expression.inc"
    ,
#include "import_program.inc"
    ,
#include "import_trace.inc"
    ,
#include "import_session.inc"
    ,
#include "import_as_program.inc"
    ,
#include "import_check_values.inc"
};

constexpr std::size_t max_program_bytes = 1u << 20;
constexpr std::int64_t max_memory_bytes = std::int64_t{48} << 30;  ///< of addresses: PyTorch's too
constexpr std::int64_t max_file_bytes = std::int64_t{64}
                                        << 20;  ///< PyTorch tries its scratch folder
constexpr std::size_t longest_line = 600;

/// The program's answer: the file, and values to check it with.
struct Answer {
  std::string text;
  std::map<std::string, std::int64_t> small;
  std::vector<std::string> notes;
  HostInputs inputs, outputs;
  std::string why;  ///< there is no definition
  std::string torch;
};

/// "0.5 inf 2": numbers as Python writes them.
std::vector<double> numbers(const std::string& text) {
  std::vector<double> values;
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const double value = std::strtod(at, &end);
    if (end == at) return values;
    values.push_back(value);
  }
}

HostInputs read_values(JsonReader reader) {
  HostInputs values;
  for (auto& [name, field] : reader.entries(256))
    values[name] = numbers(field.string(largest_result));
  return values;
}

Result<Answer> read_answer(const std::string& line, const std::string& where) {
  const Result<json::value> value = parse_json(line, where);
  if (!value) return Error{where + ": the tracing program gave no answer"};
  JsonReader reader(where, *value);
  if (reader.has("error")) {
    return Error{where + ": " + one_line(reader.required("error").string(), longest_line)};
  }
  Answer answer;
  answer.text = reader.required("file").string();
  for (auto& [name, field] : reader.required("small").entries(64)) {
    answer.small[name] = field.integer(1, std::int64_t{1} << 40);
  }
  for (const std::string& note : reader.required("notes").strings(512, 2000)) {
    answer.notes.push_back(one_line(note, longest_line));
  }
  answer.inputs = read_values(reader.required("inputs"));
  answer.outputs = read_values(reader.required("outputs"));
  if (auto why = reader.optional("why")) answer.why = one_line(why->string(), longest_line);
  answer.torch = one_line(reader.required("torch").string(), longest_line);
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return answer;
}

Error ended(const ChildOutcome& outcome, const ImportRequest& request, const std::string& where) {
  const std::string words =
      outcome.last_words.empty() ? "" : ": " + one_line(outcome.last_words, longest_line);
  if (outcome.end == ChildOutcome::End::deadline) {
    return {where + ": not traced within " + std::to_string(request.deadline.count()) +
            " s (--deadline gives more)"};
  }
  return {where + ": the tracing program " + how_it_ended(outcome) + words};
}

Result<Answer> traced(const json::object& question, const ImportRequest& request) {
  const std::string where = request.file.string();
  std::string script;
  for (const char* part : script_parts) script += std::string(part) + "\n";
  ChildCommand command;
  // A script on the command line may be too long for one argument: it comes before the question.
  command.arguments = {"/usr/bin/env", "python3", "-c",
                       "import sys; size = int(sys.stdin.buffer.readline()); "
                       "exec(compile(sys.stdin.buffer.read(size), 'import', 'exec'))"};
  command.input = std::to_string(script.size()) + "\n" + script + json::serialize(question);
  command.deadline = request.deadline;
  command.exit_deadline = request.deadline;
  command.limits.processor_time = 16 * request.deadline;
  command.limits.open_files = 4096;
  command.limits.file_bytes = max_file_bytes;
  command.limits.address_space_bytes = max_memory_bytes;
  SandboxAdditions additions = python_additions();
  for (const auto& [name, tensor] : request.workload.tensors) {
    additions.readable.push_back(tensor.file.string());
  }
  additions.variables.push_back("CUDA_VISIBLE_DEVICES=");
  const Result<ChildOutcome> outcome =
      run_sandboxed(std::move(command), SandboxDevices::none, additions);
  if (!outcome) return outcome.error();
  if (outcome->end != ChildOutcome::End::exited || outcome->result.empty()) {
    return ended(*outcome, request, where);
  }
  return read_answer(outcome->result, where);
}

/// How far an output of the definition is from the program's.
Agreement compared(const Tensor& output, const std::vector<double>& made,
                   const std::vector<double>& program) {
  Agreement agreement;
  agreement.output = output.name;
  agreement.comparison = output.comparison;
  agreement.elements = static_cast<std::int64_t>(program.size());
  double squares = 0, largest = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (std::isfinite(program[i])) squares += program[i] * program[i];
    if (made[i] == program[i]) continue;
    ++agreement.unequal;
    const double off = std::abs(made[i] - program[i]);
    largest = off <= largest ? largest : std::isnan(off) ? HUGE_VAL : off;
  }
  const double rms = std::sqrt(squares / std::max<double>(1, static_cast<double>(program.size())));
  agreement.largest = largest == 0 ? 0 : largest / (rms > 0 ? rms : 1);
  if (output.comparison == Comparison::close) agreement.unequal = 0;
  return agreement;
}

/// The definition on the program's own inputs beside the program's outputs.
Result<std::vector<Agreement>> agreements_of(const Problem& small, const Answer& answer,
                                             const std::string& where) {
  for (const Tensor* input : small.inputs()) {
    const auto found = answer.inputs.find(input->name);
    if (found == answer.inputs.end() ||
        static_cast<std::int64_t>(found->second.size()) != input->elements()) {
      return Error{where + ": '" + input->name + "' has another size in the program"};
    }
  }
  HostInputs made;
  try {
    made = small.host_oracle(answer.inputs);
  } catch (const std::out_of_range& failure) {
    return Error{where + ": the definition that was made does not run: " + failure.what()};
  }
  std::vector<Agreement> agreements;
  for (const Tensor* output : small.outputs()) {
    const auto program = answer.outputs.find(output->name);
    const std::vector<double>& ours = made.at(output->name);
    if (program == answer.outputs.end() || program->second.size() != ours.size()) {
      return Error{where + ": '" + output->name + "' has another size in the program"};
    }
    agreements.push_back(compared(*output, ours, program->second));
    if (!agreements.back().agrees()) {
      return Error{where + ": the definition that was made differs from the program in float64 (" +
                   to_text(agreements.back()) + ")"};
    }
  }
  return agreements;
}

/// The file of a workload's tensor; data sets name it from their own root.
fs::path stored_at(JsonReader& field, const fs::path& workloads) {
  const fs::path path = field.string(1000);
  std::error_code ignored;
  const fs::path folder = fs::absolute(workloads, ignored).parent_path();
  for (fs::path place = folder;; place = place.parent_path()) {
    if (fs::is_regular_file(place / path, ignored)) return place / path;
    if (place == place.root_path()) break;
  }
  field.fail("no file " + path.string() + " in " + folder.string() + " or above it");
  return path;
}

}  // namespace

std::string import_digest() {
  std::string scripts;
  for (const char* part : script_parts) scripts += part;
  return sha256_hex(scripts);
}

bool is_flashinfer_definition(const std::string& text) {
  const Result<json::value> value = parse_json(text, "a definition");
  const json::object* object = value ? value->if_object() : nullptr;
  return object && object->contains("reference") && object->contains("axes");
}

Result<Workload> workload_for(const std::string& definition, const fs::path& file,
                              const fs::path& workloads) {
  const Result<json::value> spec = parse_json(definition, file.string());
  if (!spec) return spec.error();
  JsonReader root(file.string(), *spec);
  const std::string name_of_definition = root.required("name").string(200);
  if (auto error = root.error()) return *error;
  const Result<std::string> text = read_file(workloads);
  if (!text) return text.error();
  std::istringstream lines(*text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = workloads.string() + ": line " + std::to_string(++number);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Result<json::value> value = parse_json(line, where);
    if (!value) return value.error();
    JsonReader reader(where, *value);
    const std::string of = reader.required("definition").string(200);
    Workload found;
    JsonReader workload = reader.required("workload");
    for (auto& [name, field] : workload.required("axes").entries(64)) {
      found.axes[name] = field.integer(1, std::int64_t{1} << 40);
    }
    if (auto inputs = workload.optional("inputs")) {
      for (auto& [name, field] : inputs->entries(64)) {
        const std::string type = field.required("type").string(64);
        if (type == "scalar") {
          found.scalars[name] = field.required("value").real();
        } else if (type == "safetensors") {
          JsonReader path = field.required("path");
          const std::string key = field.required("tensor_key").string(200);
          found.tensors[name] = {stored_at(path, workloads), key};
        }
      }
    }
    if (auto error = reader.error()) return *error;
    if (of == name_of_definition) return found;
  }
  return Error{workloads.string() + ": no workload for '" + name_of_definition + "'"};
}

fs::path workloads_of(const fs::path& definition) {
  std::error_code ignored;
  const fs::path file = fs::absolute(definition, ignored);
  for (fs::path place = file.parent_path(); place != place.root_path();
       place = place.parent_path()) {
    if (place.filename() != "definitions") continue;
    fs::path found = place.parent_path() / "workloads" / file.lexically_relative(place);
    found.replace_extension(".jsonl");
    return fs::is_regular_file(found, ignored) ? found : fs::path();
  }
  return {};
}

std::string id_after(const fs::path& file) {
  std::string stem = file.stem().string();
  const std::size_t number = stem.find_first_not_of("0123456789");
  if (number != std::string::npos && number > 0 && stem[number] == '_') stem.erase(0, number);
  std::string id;
  for (const char c : stem) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) {
      if (id.empty() && std::isdigit(byte)) id = "problem_";
      id += static_cast<char>(std::tolower(byte));
    } else if (!id.empty() && id.back() != '_') {
      id += '_';
    }
  }
  constexpr std::size_t longest = 56;
  id = id.substr(0, longest);
  while (id.ends_with('_')) id.pop_back();
  if (id.empty()) id = "problem";
  return find_problem(id) ? "imported_" + id : id;
}

Result<ImportedProblem> import_problem(const ImportRequest& request) {
  const Result<std::string> program = read_file(request.file, max_program_bytes);
  if (!program) return program.error();
  const std::string where = request.file.string();
  const std::string id = request.id.empty() ? id_after(request.file) : request.id;
  if (!is_identifier(id)) {
    return Error{"--id " + one_line(id, 100) + ": expected letters, digits and _"};
  }
  const bool flashinfer = is_flashinfer_definition(*program);
  json::object axes;
  for (const auto& [name, size] : request.workload.axes) axes[name] = size;
  json::object scalars;
  for (const auto& [name, value] : request.workload.scalars) scalars[name] = value;
  json::object tensors;
  for (const auto& [name, tensor] : request.workload.tensors) {
    tensors[name] = {{"file", tensor.file.string()}, {"key", tensor.key}};
  }
  const Result<Answer> answer = traced({{"kind", flashinfer ? "flashinfer" : "kernelbench"},
                                        {"path", request.file.filename().string()},
                                        {"text", *program},
                                        {"id", id},
                                        {"title", request.file.stem().string()},
                                        {"axes", std::move(axes)},
                                        {"scalars", std::move(scalars)},
                                        {"tensors", std::move(tensors)},
                                        {"as_program", request.as_program}},
                                       request);
  if (!answer) return answer.error();
  const std::string made = where + ": the problem that was made";
  Result<Problem> problem = parse_problem(answer->text, made, id, std::string(strangers_group));
  if (!problem) return problem.error();
  ImportedProblem imported;
  imported.why_program = answer->why;
  if (!problem->program) {
    const Result<Problem> small = problem_at(*problem, answer->small);
    if (!small) return Error{made + ": " + small.error().message};
    Result<std::vector<Agreement>> agreements = agreements_of(*small, *answer, where);
    if (!agreements) return agreements.error();
    imported.agreements = *std::move(agreements);
  }
  imported.problem = *std::move(problem);
  imported.problem.text = answer->text;
  imported.notes = answer->notes;
  imported.small = answer->small.empty() ? "its own sizes" : sizes_text(answer->small);
  imported.torch = answer->torch;
  return imported;
}

}  // namespace rekernel

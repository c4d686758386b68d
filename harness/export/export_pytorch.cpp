// An export for PyTorch: a package whose Python is the same for every kernel but for the operator's
// signature, with the plan as it is (kernel.json) and the sizes (sizes.json) beside it.

#include <boost/json.hpp>
#include <cctype>
#include <string_view>

#include "harness/base/json.h"
#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/compile/compile.h"
#include "harness/export/export.h"

namespace rekernel {

namespace {

namespace json = boost::json;

/// Operators of all exports live in this library of PyTorch's.
constexpr const char* operator_library = "rekernel";

const char* torch_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "torch.float16";
    case DType::bf16:
      return "torch.bfloat16";
    case DType::f32:
      return "torch.float32";
    case DType::f64:
      return "torch.float64";
    case DType::u8:
      return "torch.uint8";
    case DType::i32:
      return "torch.int32";
    case DType::f8e4m3:
      return "torch.float8_e4m3fn";
    case DType::f8e5m2:
      return "torch.float8_e5m2";
    case DType::i8:
      return "torch.int8";
    case DType::i64:
      return "torch.int64";
    case DType::boolean:
      return "torch.bool";
  }
  return "";
}

json::object tensor_json(const Tensor& tensor) {
  json::object result{{"name", tensor.name},
                      {"dtype", torch_type(tensor.dtype)},
                      {"shape", json::value_from(tensor.shape)}};
  if (tensor.role == Role::input) {
    const Distribution& distribution = tensor.distribution;
    result["distribution"] = {to_string(distribution.kind), distribution.a, distribution.b};
    if (distribution.kind == Distribution::Kind::choice) {
      result["choices"] = json::value_from(distribution.choices);
    }
  } else {
    result["comparison"] = tensor.comparison == Comparison::close   ? "close"
                           : tensor.comparison == Comparison::equal ? "equal"
                                                                    : "index";
  }
  return result;
}

json::array capability_json(ComputeCapability capability) {
  return {capability.major, capability.minor};
}

json::object code_json(const ExportSource& source) {
  if (source.codes.empty()) {
    return {{"options", json::value_from(source_options(source.candidate.program.compile))}};
  }
  json::array targets;
  for (const ExportedCode& code : source.codes) {
    targets.push_back({{"name", to_string(code.target)},
                       {"capability", capability_json(code.target->capability)},
                       {"family_specific", code.target->family_specific}});
  }
  return {{"targets", std::move(targets)}};
}

json::object sizes_json(const ExportSource& source) {
  const Candidate& candidate = source.candidate;
  const WorkspaceLayout layout = workspace_layout(candidate.program);
  json::array inputs;
  json::array outputs;
  for (const Tensor& tensor : source.problem.tensors) {
    (tensor.role == Role::input ? inputs : outputs).push_back(tensor_json(tensor));
  }
  json::array workspaces;
  for (std::size_t i = 0; i < layout.offsets.size(); ++i) {
    const Workspace& workspace = candidate.program.workspaces[i];
    workspaces.push_back({workspace.name, layout.offsets[i], workspace.bytes});
  }
  return {{"name", export_name(candidate)},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)},
          {"workspaces", std::move(workspaces)},
          {"workspace_bytes", layout.bytes},
          {"capability", capability_json(candidate.arch->capability)},
          {"family_specific", candidate.arch->family_specific},
          {"code", code_json(source)}};
}

/// The text within a docstring: neither escapes nor ends it.
std::string docstring(const std::string& text) {
  std::string result;
  for (const char c : wrapped(text)) {
    if (c == '\\' || c == '"') result += '\\';
    result += c;
  }
  return result;
}

std::string judgement_sentence(const TemplateWords& words) {
  return "The judge's verdict on exactly this source and plan: " + words.at("judgement_in_short") +
         ". JUDGEMENTS has all that was recorded, the device most like the one it is for first.";
}

/// Whether a name stands in an expression.
bool has_word(std::string_view text, std::string_view name) {
  const auto is_part = [&](std::size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    if (!is_part(at - 1) && !is_part(at + name.size())) return true;
  }
  return false;
}

TemplateWords operator_words(const ExportSource& source) {
  TemplateWords words = export_words(source);
  std::vector<std::string> names;
  std::vector<std::string> typed;
  std::vector<std::string> pointers;
  for (const Tensor& tensor : source.problem.tensors) {
    if (tensor.role == Role::output) continue;
    names.push_back(tensor.name);
    typed.push_back(tensor.name + ": torch.Tensor");
    pointers.push_back(tensor.name + ".data_ptr()");
  }
  const std::string name = export_name(source.candidate);
  words["function"] = name;
  words["package"] = name;
  words["operator_library"] = operator_library;
  words["first_input"] = names.front();
  // Below the first, which follows "def NAME(".
  words["signature"] = joined(typed, ",\n" + std::string(name.size() + 5, ' '));
  words["signature_names"] = joined(names);
  words["pointers"] = joined(pointers);
  const std::size_t outputs = source.problem.outputs().size();
  const std::vector<std::string> tensors(outputs, "torch.Tensor");
  words["returns"] = outputs == 1 ? "torch.Tensor" : "tuple[" + joined(tensors) + "]";
  words["returned"] = outputs == 1 ? "outputs[0]" : "outputs";
  words["library"] = source.library.python;
  words["constants"];
  for (const Attribute& attribute : source.problem.attributes) {
    if (!has_word(source.library.python, attribute.name)) continue;
    words["constants"] += "    " + attribute.name + " = " + value_text(attribute) + "\n";
  }
  return words;
}

}  // namespace

std::vector<ExportedFile> export_to_pytorch(const ExportSource& source) {
  const TemplateWords words = operator_words(source);
  const std::string package = export_name(source.candidate) + "/";
  TemplateWords documented = words;
  documented["idea"] = docstring(words.at("idea"));
  documented["origin"] = docstring(words.at("origin"));
  documented["judgement"] = docstring(judgement_sentence(words));

  std::vector<ExportedFile> files;
  files.push_back({package + "__init__.py", filled("package/operator.py.in", documented)});
  for (const char* file : {"_driver.py", "_kernel.py"}) {
    files.push_back({package + file, filled(std::string("package/") + file, {})});
  }
  // Its sizes are fixed: numbers stand where the plan may be in axes.
  Candidate of_own_sizes = source.candidate;
  of_own_sizes.written.clear();
  files.push_back({package + "kernel.json", candidate_json(of_own_sizes)});
  files.push_back({package + "sizes.json", pretty_json(sizes_json(source))});
  files.push_back({package + "kernel.cu", source.candidate.program.source});
  files.push_back({package + "problem.h", problem_header(source.problem)});
  for (const ExportedCode& code : source.codes) {
    files.push_back({package + to_string(code.target) + ".cubin", code.cubin});
  }
  TemplateWords metadata = words;
  metadata["description"] =
      quoted(words.at("title") + ": a CUDA kernel as an operator for PyTorch; " +
             words.at("judgement_in_short"));
  files.push_back({"pyproject.toml", filled("package/pyproject.toml.in", metadata)});
  files.push_back({"test_" + words.at("function") + ".py", filled("package/test.py.in", words)});
  TemplateWords page = words;
  page["idea"] = markdown_text(words.at("idea"));
  page["origin"] = markdown_text(words.at("origin"));
  files.push_back({"README.md", filled("README.pytorch.md.in", page)});
  return files;
}

}  // namespace rekernel

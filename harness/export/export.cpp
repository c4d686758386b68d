#include "harness/export/export.h"

#include <algorithm>
#include <charconv>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/candidate/code.h"

namespace rekernel {

namespace {

std::string text_of(double value) {
  char text[32];
  std::string result(text, std::to_chars(text, text + sizeof text, value).ptr);
  return result.find_first_of(".e") == std::string::npos ? result + ".0" : result;
}

std::string origin_text(const Origin& origin) {
  if (!origin.note.empty()) return "origin: " + one_line(origin.note, origin.note.size());
  return "origin: candidate " + origin.candidate + " of " + origin.trajectory;
}

std::string code_note(const ExportSource& source) {
  if (source.codes.empty()) {
    return "The source is compiled by NVRTC when the program runs, for the GPU that is there.";
  }
  std::vector<std::string> names;
  for (const ExportedCode& code : source.codes) names.emplace_back(to_string(code.target));
  return "It holds machine code for " + joined(names) + ".";
}

/// As they stand in front of an assignment in Python.
std::string output_names(const Problem& problem) {
  std::vector<std::string> names;
  for (const Tensor* output : problem.outputs()) names.push_back(output->name);
  return joined(names);
}

std::string library_name(const LibraryFunction& library) {
  if (library.cpp.empty()) return "plain kernels of the definition";
  if (!library.cublas) return "cuDNN";
  return library.cudnn ? "cuBLAS and cuDNN" : "cuBLAS";
}

}  // namespace

Result<Ok> check_exportable(const Candidate& candidate, const std::string& where) {
  const Program& program = candidate.program;
  if (program.language != Language::cuda || !program.modules.empty()) {
    return Error{where +
                 ": captured code (PTX, machine code or several modules); only CUDA C++ in one "
                 "kernel.cu can be exported"};
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const auto* launch = std::get_if<KernelLaunch>(&program.steps[i]);
    if (!launch) continue;
    for (std::size_t j = 0; j < launch->args.size(); ++j) {
      if (!std::holds_alternative<BytesArgument>(launch->args[j])) continue;
      return Error{where + ": launches[" + std::to_string(i) + "].args[" + std::to_string(j) +
                   "]: bytes cannot be exported; expected a buffer, a scalar or a tensor map"};
    }
  }
  return Ok{};
}

std::string export_name(const Candidate& candidate) {
  return candidate.problem + "_" + candidate.name;
}

WorkspaceLayout workspace_layout(const Program& program) {
  // As the harness's own buffers, so that nothing meets an alignment that it was not judged with.
  constexpr std::int64_t alignment = 1024;
  WorkspaceLayout layout;
  for (const Workspace& workspace : program.workspaces) {
    layout.offsets.push_back(layout.bytes);
    layout.bytes += (workspace.bytes + alignment - 1) / alignment * alignment;
  }
  return layout;
}

std::string value_text(const Attribute& attribute) {
  const auto* integer = std::get_if<std::int64_t>(&attribute.value);
  return integer ? std::to_string(*integer) : text_of(std::get<double>(attribute.value));
}

std::vector<JudgementFact> kernel_facts(const Candidate& candidate) {
  return {{"problem", candidate.problem},
          {"kernel", candidate.name},
          {"sha256", candidate_sha256(candidate)}};
}

TemplateWords export_words(const ExportSource& source) {
  const Candidate& candidate = source.candidate;
  const Problem& problem = source.problem;
  const ComputeCapability capability = candidate.arch->capability;
  TemplateWords words{
      {"problem", candidate.problem},
      {"name", candidate.name},
      {"title", problem.title},
      {"idea", one_line(candidate.idea, candidate.idea.size())},
      {"sha256", candidate_sha256(candidate)},
      {"origin", origin_text(candidate.origin)},
      {"code_note", code_note(source)},
      {"library_name", library_name(source.library)},
      {"capability", std::to_string(capability.major) + "." + std::to_string(capability.minor) +
                         (candidate.arch->family_specific ? "" : " or newer")},
      {"output", output_names(problem)},
      {"judgement_in_short", judgement_in_short(source.judgement)},
      {"judgement_comment", judgement_comment(source.judgement)},
      {"judgement_constants", judgement_constants(kernel_facts(candidate), source.judgement)},
      {"judgement_list", judgement_list(kernel_facts(candidate), source.judgement)},
      {"judgement_keys", judgement_keys(kernel_facts(candidate), source.judgement)},
      {"judgement_table", judgement_table(source.judgement)},
      {"absolute", text_of(problem.tolerance.absolute)},
      {"relative", text_of(problem.tolerance.relative)},
      {"rms_bound", text_of(problem.tolerance.rms_error_over_rms)}};
  for (const Attribute& attribute : problem.attributes) {
    words[attribute.name] = value_text(attribute);
  }
  return words;
}

}  // namespace rekernel

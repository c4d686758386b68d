#pragma once

#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/export/judgement.h"
#include "harness/export/templates.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// What the test of an export compares with.
struct LibraryFunction {
  /// The template of a class Library, whose run() takes all tensors; empty: the definition.
  std::string cpp;
  TemplateWords cpp_words;  ///< that it needs beside the problem's attributes
  bool cublas = false;      ///< it uses it
  bool cudnn = false;
  std::string python;  ///< an expression of PyTorch over the inputs and the problem's attributes
};

/// Machine code of a candidate for one target.
struct ExportedCode {
  Arch target;
  std::string cubin;
};

/// All that an export is made of.
struct ExportSource {
  const Candidate& candidate;
  const Problem& problem;  ///< the candidate's
  const LibraryFunction& library;
  /// Without any, NVRTC compiles the source when the program runs.
  std::vector<ExportedCode> codes;
  const RecordedJudgement& judgement;
};

/// A file of an export, by its path in the export's folder.
struct ExportedFile {
  std::string path;
  std::string content;
};

/// Error unless an export can hold it: CUDA C++ in one module, whose kernels take addresses,
/// scalars and tensor maps. What was captured from other people's programs may have more. `where`
/// starts messages.
Result<Ok> check_exportable(const Candidate& candidate, const std::string& where);

/// What a kernel is called where it is used: "softmax_cluster_with_prefetch".
std::string export_name(const Candidate& candidate);

/// A header that runs the candidate's plan in any C++17 program, with a test beside it.
std::vector<ExportedFile> export_to_cpp(const ExportSource& source);

/// The same as a Python package that registers an operator in PyTorch.
std::vector<ExportedFile> export_to_pytorch(const ExportSource& source);

/// What every judgement of the candidate begins with: its problem, name and hash.
std::vector<JudgementFact> kernel_facts(const Candidate& candidate);
/// The words that all templates share.
TemplateWords export_words(const ExportSource& source);
/// An attribute's value as C++ and Python write it.
std::string value_text(const Attribute& attribute);
/// Where the workspaces begin in an export's one workspace, and its bytes.
struct WorkspaceLayout {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};
WorkspaceLayout workspace_layout(const Program& program);

}  // namespace rekernel

#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ops/problem.h"
#include "ops/result.h"
#include "reference/agreement.h"

namespace rekernel {

/// A tensor in a file of the format safetensors.
struct StoredTensor {
  std::filesystem::path file;
  std::string key;
};

/// What a workload of FlashInfer's gives a Definition.
struct Workload {
  std::map<std::string, std::int64_t> axes;     ///< variable ones
  std::map<std::string, double> scalars;        ///< inputs that are numbers
  std::map<std::string, StoredTensor> tensors;  ///< inputs whose values it has
};

/// A program or a definition of somebody else's, of which a problem's file is made.
struct ImportRequest {
  /// KernelBench's Python (`Model`, `get_inputs`, `get_init_inputs`), or a Definition of
  /// FlashInfer's in JSON.
  std::filesystem::path file;
  std::string id;           ///< of the problem; empty: after the file
  Workload workload;        ///< of a Definition
  bool as_program = false;  ///< the program gives the truth, whatever the language can say
  std::chrono::seconds deadline{120};
};

struct ImportedProblem {
  Problem problem;                    ///< `text` is the file's
  std::vector<std::string> notes;     ///< how distributions were found, types that the code forces
  std::string small;                  ///< the sizes at which it was checked: "rows 8, columns 8"
  std::vector<Agreement> agreements;  ///< of the definition with the program in float64
  /// Empty where there is a definition; else why there is none, and the program gives the truth.
  std::string why_program;
  std::string torch;  ///< PyTorch's version
};

/// Traces the program with PyTorch on the CPU, in the sandbox, without network; translates what was
/// traced into the definition language; and compares the definition with the program in float64 on
/// the program's own inputs, at smaller sizes where it has them. Where the language cannot say it,
/// the problem's truth is the program itself. Errors, a line each: what is not there, what has no
/// one right output.
Result<ImportedProblem> import_problem(const ImportRequest& request);

/// Of what makes problems of programs: another one may make another problem.
std::string import_digest();

/// Whether the text is a Definition of FlashInfer's.
bool is_flashinfer_definition(const std::string& text);

/// The first workload in a file (JSON, a line each) that is for this Definition, whose text is
/// given. Files that it names are looked for in the folder of the workloads, then in those above
/// it.
Result<Workload> workload_for(const std::string& definition, const std::filesystem::path& file,
                              const std::filesystem::path& workloads);

/// Where a data set of FlashInfer's has the workloads of a Definition, `workloads/…/NAME.jsonl` of
/// `definitions/…/NAME.json`; empty if they are not there.
std::filesystem::path workloads_of(const std::filesystem::path& definition);

/// "19_ReLU.py" → "relu": what a problem may be called.
std::string id_after(const std::filesystem::path& file);

}  // namespace rekernel

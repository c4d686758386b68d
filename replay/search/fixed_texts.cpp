#include "replay/search/fixed_texts.h"

#include <cstdint>

#include "harness/base/text.h"
#include "harness/candidate/arch.h"
#include "harness/plan/plan_texts.h"

namespace rekernel {
namespace {

std::string shape_text(const Tensor& tensor) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    text += (axis > 0 ? ", " : "") + std::to_string(tensor.shape[axis]);
  }
  return text + ")";
}

std::string rounded(double value) { return printed("%.3g", value); }

/// What "arch" can be on a device that runs these, and why one would want it.
std::string archs_text(const std::vector<Arch>& archs) {
  std::vector<std::string> newer_too;
  std::string alone;
  for (const Arch arch : archs) {
    const std::string name = '"' + std::string(to_string(arch)) + '"';
    if (!arch->family_specific) {
      newer_too.push_back(name);
      continue;
    }
    std::vector<std::string> gains{arch->own_instructions};
    if (arch->tensor_maps) gains.emplace_back("bulk tensor copies");
    if (has_clusters(arch)) gains.emplace_back("clusters");
    alone += " or " + name + " (only that chip family; needed for " + joined(gains) + ")";
  }
  return joined(newer_too, " or ") + " (that and everything newer)" + alone;
}

const char* const example_plan = R"json({
  "idea": "One block per row: a first kernel finds each row's maximum and sum of exponentials, a second one writes the quotients.",
  "arch": "sm_80",
  "compile": {"fast_math": false, "defines": {"THREADS": 256}},
  "workspace": {"row_max": 16384, "row_sum": 16384},
  "launches": [
    {"memset": "row_sum", "value": 0},
    {"kernel": "row_statistics", "grid": [4096], "block": [256], "args": ["x", "row_max", "row_sum"]},
    {"kernel": "normalise", "grid": [{"per_sm": 8}], "block": [256], "args": ["x", "row_max", "row_sum", "y", {"i32": 4096}]}
  ]
}
)json";

const char* const example_source = R"cuda(#include "problem.h"

extern "C" __global__ void row_statistics(const float* x, float* row_max, float* row_sum) {
  __shared__ float partial[THREADS];
  const float* row = x + 1ll * blockIdx.x * problem::columns;
  float largest = row[0];
  for (int i = threadIdx.x; i < problem::columns; i += THREADS) largest = fmaxf(largest, row[i]);
  partial[threadIdx.x] = largest;
  __syncthreads();
  for (int i = 0; i < THREADS; ++i) largest = fmaxf(largest, partial[i]);
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < problem::columns; i += THREADS) sum += expf(row[i] - largest);
  atomicAdd(&row_sum[blockIdx.x], sum);
  if (threadIdx.x == 0) row_max[blockIdx.x] = largest;
}

extern "C" __global__ void normalise(const float* x, const float* row_max, const float* row_sum,
                                     float* y, int rows) {
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const long long first = 1ll * row * problem::columns;
    for (int i = threadIdx.x; i < problem::columns; i += THREADS) {
      y[first + i] = expf(x[first + i] - row_max[row]) / row_sum[row];
    }
  }
}
)cuda";

}  // namespace

Templates default_templates() {
  Templates templates;
  templates.ideas =
      R"(You plan how to make a GPU kernel faster. Below are a problem, a GPU, the kernels so far with their measured times, and what was tried. Propose what to try next.

# Problem
{{problem}}
# GPU
{{device}}
# Form of a candidate
{{format}}
# Kernels to start from
{{seeds}}
# What was tried
{{history}}
# Your task
Propose {{idea_count}} ideas, each different in kind from the others and from what was tried without success. First find out what limits the best kernel: memory traffic, latency, instruction issue, the matrix units, synchronisation, or occupancy. Ideas may concern memory access; asynchronous copies and latency hiding; data types and precision; the choice of algorithm and instructions; parallelism and occupancy; control flow, loops and index arithmetic. An idea says in plain language what changes, why it should be faster on this GPU, and roughly how to do it; it contains no code.

Answer with one fenced json block and nothing after it: a list of {"title": "a few words", "idea": "three to eight sentences"} objects, one for each idea, no more and no fewer.
)";
  templates.kernel = R"(You write a fast and correct GPU kernel.

# Problem
{{problem}}
# GPU
{{device}}
# Form of a candidate
{{format}}
# Kernels to start from
{{seeds}}
# What was tried
{{history}}
# The idea to implement
{{idea}}

# Your task
This is attempt {{branch}} at this idea; the attempts do not see each other and should differ in tile sizes, number of stages, and the like. Write a candidate that implements this idea. Start from the first kernel above if there is one. It must be correct on new inputs. Guard bands, unwritten outputs and changed inputs are checked, and the timed runs are checked too. Answer with exactly one fenced cuda block, the whole of kernel.cu, and exactly one fenced json block, the plan. A short explanation may come before them.
)";
  return templates;
}

std::string tensor_line(const Tensor& tensor) {
  std::string line = std::string("- ") + (tensor.role == Role::input ? "input " : "output ") +
                     tensor.name + ": " + to_string(tensor.dtype) + " " + shape_text(tensor);
  if (tensor.role == Role::input) {
    const Distribution& from = tensor.distribution;
    switch (from.kind) {
      case Distribution::Kind::normal:
        line += ", normal with mean " + rounded(from.a) + " and deviation " + rounded(from.b);
        break;
      case Distribution::Kind::uniform:
        line += ", uniform from " + rounded(from.a) + " to " + rounded(from.b);
        break;
      case Distribution::Kind::constant:
        line += ", all " + rounded(from.a);
        break;
      case Distribution::Kind::integers:
        line += ", integers from " + rounded(from.a) + " to " + rounded(from.b - 1);
        break;
      case Distribution::Kind::choice: {
        std::vector<std::string> values;
        for (const double choice : from.choices) values.push_back(rounded(choice));
        line += ", each one of " + joined(values) + ", equally often";
        break;
      }
    }
  }
  return line + "\n";
}

/// A problem without a definition has no correct kernel to start from: its program says what to
/// compute.
std::string program_text(const TruthProgram& program) {
  return "What is to be computed, this program says, in Python with PyTorch. Its parameters and "
         "inputs are the tensors above; the truth is what it gives in float64:\n```python\n" +
         program.text + (program.text.ends_with('\n') ? "" : "\n") + "```\n";
}

/// Statements, PyTorch's expression, and the sizes at which a plan in axes is judged too.
std::string definition_text(const Problem& problem) {
  std::string text =
      "The definition, a statement for each tensor; `:` in a reduction is followed by the "
      "condition "
      "on its terms, `else` by what is read outside of a tensor, and `//` rounds down:\n```\n";
  for (const std::string& statement : problem.formula) text += statement + "\n";
  text += "```\n";
  if (!problem.pytorch.empty()) text += "The same in PyTorch: `" + problem.pytorch + "`\n";
  if (problem.other_sizes.empty()) return text;
  text += "A plan in axes is judged at other sizes too:";
  for (const auto& [axis, range] : problem.other_sizes) {
    text += (text.back() == ':' ? " " : ", ") + axis + " from " + std::to_string(range.first) +
            " to " + std::to_string(range.second);
  }
  return text + ".\n";
}

std::string problem_text(const Problem& problem, const std::vector<std::string>& references) {
  std::string text = problem.id + ": " + problem.title + ".\nTensors, row-major:\n";
  for (const Tensor& tensor : problem.tensors) text += tensor_line(tensor);
  text += "The header problem.h, which kernel.cu can include:\n```cuda\n" +
          problem_header(problem) + "```\n";
  text += problem.program ? program_text(*problem.program) : definition_text(problem);
  const Tolerance& tolerance = problem.tolerance;
  text += "Correct means that every element satisfies, against a float64 truth: |error| <= " +
          rounded(tolerance.absolute) + " + " + rounded(tolerance.relative) +
          " * |truth|; and that rms(error) <= " + rounded(tolerance.rms_error_over_rms) +
          " * rms(truth) and max|error| <= " + rounded(tolerance.max_error_over_rms) +
          " * rms(truth). NaN never passes.\n";
  text +=
      "The time is that of the whole plan, from the first launch to the end of the last, with a "
      "cold L2 cache and new input values for every sample. The median counts";
  if (!references.empty()) text += ", beside that of " + references.front();
  std::int64_t bytes = 0;
  for (const Tensor& tensor : problem.tensors) bytes += tensor.bytes();
  text += ".\nInputs and output together are " + std::to_string(bytes) + " bytes";
  if (bytes != problem.min_bytes) {
    text += ", of which " + std::to_string(problem.min_bytes) +
            " have to be read or written on average, since values decide";
  }
  if (!problem.program) {
    text += "; the definition takes " + std::to_string(problem.operations) + " operations";
  }
  return text + ".\n";
}

std::string device_text(const DeviceFacts& device) {
  const auto giga = [](std::int64_t value) { return std::to_string(value / 1000000000); };
  std::string text = device.name + ", code for " + device.target + ": " +
                     std::to_string(device.multiprocessors) + " multiprocessors, " +
                     std::to_string(device.shared_bytes_per_block) +
                     " bytes of shared memory per block, " + std::to_string(device.l2_bytes) +
                     " bytes of L2 cache.\n";
  if (device.copy_bytes_per_s > 0) {
    text += "Copy bandwidth " + giga(device.copy_bytes_per_s) + " GB/s";
    if (device.fp16_flops_per_s > 0) {
      text += ", FP16 matrix products " + giga(device.fp16_flops_per_s) + " GFLOP/s";
    }
    text += ".\n";
  }
  return text;
}

SeedCandidate worked_example() { return {example_plan, example_source}; }

std::string format_text(const std::string& target) {
  const std::vector<Arch> archs = archs_on(capability_of(target).value_or(ComputeCapability{}));
  std::string text =
      R"(A candidate is device code, kernel.cu, and a launch plan in JSON. There is no host code: the harness allocates the plan's buffers and issues its launches, in order on one stream. NVRTC compiles the code as C++20. Kernels are extern "C" __global__ functions.
Only these headers can be included: problem.h, cuda_fp16.h, cuda_bf16.h, cuda_fp8.h, mma.h, cooperative_groups.h (and cooperative_groups/...), cuda_pipeline.h, cuda/... (barrier, pipeline, ptx, atomic). Inline PTX is allowed.
The plan's keys, and no others:
)";
  text += plan_lines(archs, archs_text(archs));
  text +=
      "Everything else in the plan (schema, problem, name, origin) is filled in. A candidate for ";
  text += target + " hardware may use all that this target has.\n";
  text +=
      "A complete example, slow but correct, for the problem softmax with x and y of shape (4096, "
      "65536) and columns = 65536:\n```cuda\n";
  text += example_source;
  text += "```\n```json\n";
  text += example_plan;
  return text + "```\n";
}

}  // namespace rekernel

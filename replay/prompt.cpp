#include "replay/prompt.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "harness/base/text.h"
#include "harness/candidate/arch.h"
#include "replay/event.h"

namespace rekernel {
namespace {

using Values = std::map<std::string, std::string, std::less<>>;

constexpr std::array ideas_placeholders = {"problem", "device",  "format",
                                           "seeds",   "history", "idea_count"};
constexpr std::array kernel_placeholders = {"problem", "device", "format", "seeds",
                                            "history", "idea",   "branch"};

/// Room for the lines that say how much was left out, and for numbers.
constexpr std::size_t reserve_bytes = 200;

/// Calls `text` for what stands between placeholders and `name` for every placeholder's name.
void walk_template(std::string_view source, const std::function<void(std::string_view)>& text,
                   const std::function<void(std::string_view)>& name) {
  while (true) {
    const std::size_t open = source.find("{{");
    const std::size_t close = open == std::string_view::npos ? open : source.find("}}", open);
    if (close == std::string_view::npos) return text(source);
    text(source.substr(0, open));
    name(source.substr(open + 2, close - open - 2));
    source.remove_prefix(close + 2);
  }
}

std::string filled(const std::string& source, const Values& values) {
  std::string result;
  walk_template(
      source, [&](std::string_view text) { result += text; },
      [&](std::string_view name) {
        const auto value = values.find(name);
        if (value != values.end()) result += value->second;
      });
  return result;
}

std::string kernel_section(const ShownKernel& kernel, const char* what) {
  std::string text = std::string("### ") + what + " " + kernel.id + "\n" + kernel.caption + "\n";
  if (!kernel.plan.empty()) text += "```json\n" + kernel.plan + "```\n";
  text += "```cuda\n" + kernel.source;
  if (!kernel.source.ends_with('\n')) text += "\n";
  return text + "```\n\n";
}

std::string history_line(const HistoryEntry& entry) {
  return "- " + entry.id + " (" + entry.idea_title + "): " + entry.outcome + "\n";
}

std::string log_lines(const HistoryEntry& entry) {
  if (entry.log.empty()) return "";
  std::string text = "  compiler: ";
  for (const char c : entry.log) text += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return text + "\n";
}

std::size_t bytes_of(const std::vector<std::string>& texts) {
  std::size_t sum = 0;
  for (const std::string& text : texts) sum += text.size();
  return sum;
}

/// The sums of the texts' sizes from the last backwards: of the last i, sums[i].
std::vector<std::size_t> sums_from_the_end(const std::vector<std::string>& texts) {
  std::vector<std::size_t> sums{0};
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
    sums.push_back(sums.back() + text->size());
  }
  return sums;
}

/// How many of a kind must go, the sum of the first i of which is sums[i], until `size` is at most
/// `limit`; takes them from `size`.
std::size_t drop(const std::vector<std::size_t>& sums, std::size_t limit, std::size_t& size) {
  if (size <= limit) return 0;
  const auto enough = std::lower_bound(sums.begin(), sums.end(), size - limit);
  const auto count =
      static_cast<std::size_t>((enough == sums.end() ? enough - 1 : enough) - sums.begin());
  size -= sums[count];
  return count;
}

const PromptHistory& no_history() {
  static const PromptHistory none;
  return none;
}

Values fixed_values(const Header& header) {
  return {{"problem", header.texts.problem},
          {"device", header.texts.device},
          {"format", header.texts.format}};
}

/// How often a template names a placeholder: what it holds counts that often.
std::size_t uses_of(const std::string& source, std::string_view placeholder) {
  std::size_t uses = 0;
  walk_template(
      source, [](std::string_view) {}, [&](std::string_view name) { uses += name == placeholder; });
  return uses;
}

template <class Names>
Result<Ok> check_template(const std::string& source, const Names& names, const std::string& where) {
  std::string unknown;
  walk_template(
      source, [](std::string_view) {},
      [&](std::string_view name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) unknown = name;
      });
  if (!unknown.empty()) {
    return Error{where + ": unknown placeholder {{" + one_line(unknown, 64) + "}}"};
  }
  for (const char* name : names) {
    if (uses_of(source, name) != 1) {
      return Error{where + ": expected the placeholder {{" + name + "}} exactly once"};
    }
  }
  return Ok{};
}

std::string shape_text(const Tensor& tensor) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    text += (axis > 0 ? ", " : "") + std::to_string(tensor.shape[axis]);
  }
  return text + ")";
}

std::string rounded(double value) { return printed("%.3g", value); }

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

const Arch* first_of(const std::vector<Arch>& archs, bool (*has_feature)(Arch)) {
  const auto found = std::find_if(archs.begin(), archs.end(), has_feature);
  return found == archs.end() ? nullptr : &*found;
}

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
    alone += " or " + name + " (that chip family alone; needed for " + joined(gains) + ")";
  }
  return joined(newer_too, " or ") + " (that and everything newer)" + alone;
}

const char* const example_plan = R"json({
  "idea": "One block a row: a first kernel finds each row's maximum and sum of exponentials, a second one writes the quotients.",
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
      R"(You plan how to make a GPU kernel faster. You are given a problem, a GPU, the kernels so far with their measured times, and what was tried. Propose what to try next.

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
Propose {{idea_count}} ideas, each different in kind from the others and from what was tried without success. Find out first what bounds the best kernel: memory traffic, latency, instruction issue, the matrix units, synchronisation, or occupancy. Fields in which ideas lie: memory access; asynchronous copies and hiding of latency; data types and precision; choice of algorithm and instructions; parallelism and occupancy; control flow, loops and index arithmetic. An idea says in plain language what changes, why it should be faster on this GPU, and roughly how; it holds no code.

Answer with one fenced json block and nothing behind it: a list of {"title": "a few words", "idea": "three to eight sentences"} objects, one for each idea, no more and no fewer.
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
This is attempt {{branch}} at this idea; the attempts do not see each other and should differ in tile sizes, number of stages, and the like. Write a candidate that implements this idea, starting from the first kernel above where there is one. It must be correct on fresh inputs; guard bands, unwritten outputs and changed inputs are checked, and the timed runs are checked too. Answer with exactly one fenced cuda block, the whole of kernel.cu, and exactly one fenced json block, the plan. A short explanation may stand before them.
)";
  return templates;
}

std::string problem_text(const Problem& problem, const std::vector<std::string>& references) {
  std::string text = problem.id + ": " + problem.title + ".\nTensors, row-major:\n";
  for (const Tensor& tensor : problem.tensors) text += tensor_line(tensor);
  text += "The header problem.h, which kernel.cu can include:\n```cuda\n" +
          problem_header(problem) + "```\n";
  const Tolerance& tolerance = problem.tolerance;
  text += "Correct means, against a float64 oracle and for every element: |error| <= " +
          rounded(tolerance.absolute) + " + " + rounded(tolerance.relative) +
          " * |truth|; besides, rms(error) <= " + rounded(tolerance.rms_error_over_rms) +
          " * rms(truth) and max|error| <= " + rounded(tolerance.max_error_over_rms) +
          " * rms(truth). NaN never passes.\n";
  text +=
      "Timed is everything in the plan, from the first launch to the end of the last, with a cold "
      "L2 cache and new input values for every sample; the median counts";
  if (!references.empty()) text += ", beside " + references.front();
  text += ".\nInputs and output together are " + std::to_string(problem.min_bytes) +
          " bytes; the definition takes " + std::to_string(problem.operations) + " operations.\n";
  return text;
}

std::string device_text(const DeviceFacts& device) {
  const auto giga = [](std::int64_t value) { return std::to_string(value / 1000000000); };
  std::string text = device.name + ", code for " + device.target + ": " +
                     std::to_string(device.multiprocessors) + " multiprocessors, " +
                     std::to_string(device.shared_bytes_per_block) +
                     " bytes of shared memory per block at most, " +
                     std::to_string(device.l2_bytes) + " bytes of L2 cache.\n";
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
  const Arch* clusters = first_of(archs, has_clusters);
  const Arch* tensor_maps = first_of(archs, has_tensor_maps);
  std::string text =
      R"(A candidate is device code, kernel.cu, and a launch plan in JSON. There is no host code: the plan's buffers are allocated and its launches issued, in order on one stream, by the harness. The code is compiled by NVRTC as C++20. Kernels are extern "C" __global__ functions.
Headers that can be included, and no others: problem.h, cuda_fp16.h, cuda_bf16.h, cuda_fp8.h, mma.h, cooperative_groups.h (and cooperative_groups/...), cuda_pipeline.h, cuda/... (barrier, pipeline, ptx, atomic). Inline PTX is allowed.
The plan's keys:
- "idea": one paragraph, what makes it fast. "arch": the lowest target, )";
  text += archs_text(archs);
  text += R"(.
- "compile": {"fast_math": bool, "max_registers": 16 to 255, "defines": {"NAME": integer or identifier}}; all optional.
- "workspace": {"name": bytes}: scratch memory, undefined at the first launch of every run; optional.
- "launches": {"memset": workspace, "value": 0 to 255}, or {"kernel", "grid": [1 to 3 extents], "block": [1 to 3 extents], "args": [...]} with, where wanted, "dynamic_shared_bytes", "cooperative": true)";
  if (clusters) {
    const std::string needed = " (" + std::string(to_string(*clusters)) + ")";
    text += R"(, "cluster": [extents])" + needed + R"(, "programmatic_launch": true)" + needed;
  }
  text += R"(. The first grid extent may be {"per_sm": n}, n blocks per multiprocessor.
- An argument is the name of a tensor or workspace (its address))";
  text += tensor_maps ? ", a scalar" : " or a scalar";
  text += R"( {"i32": 7} (also u32, i64, u64, f32, f64))";
  if (tensor_maps) {
    text +=
        ", or, for " + std::string(to_string(*tensor_maps)) +
        R"(, {"tensor_map": {"of": buffer, "dtype": "f16", "dims": [innermost first], "strides_bytes": [all but the innermost], "box": [extents], "swizzle": "none", "32B", "64B" or "128B"}}, passed as const __grid_constant__ CUtensorMap)";
  }
  text += R"(.
Everything else in the plan (schema, problem, name, origin) is filled in. A candidate for )";
  text += target + " hardware may use all that this target has.\n";
  text +=
      "A complete example, slow but correct, for the problem softmax with x and y of shape (4096, "
      "65536) and columns = 65536:\n```cuda\n";
  text += example_source;
  text += "```\n```json\n";
  text += example_plan;
  return text + "```\n";
}

void PromptHistory::add(const HistoryEntry& entry) {
  Kind& kind = entry.passed ? passed_ : failed_;
  lines_.push_back({history_line(entry), log_lines(entry)});
  log_sums_.push_back(log_sums_.back() + lines_.back().log.size());
  kind.indices.push_back(lines_.size() - 1);
  kind.sums.push_back(kind.sums.back() + lines_.back().entry.size());
}

PromptWriter::PromptWriter(const Header& header, const PromptParts& parts)
    : header_(header), history_(parts.history ? *parts.history : no_history()) {
  for (const auto& kernel : parts.survivors) survivors_.push_back(kernel_section(kernel, "Kernel"));
  for (const auto& kernel : parts.bank) bank_.push_back(kernel_section(kernel, "Kernel"));
  for (const auto& kernel : parts.library) {
    library_.push_back(kernel_section(kernel, "Given kernel"));
  }
  kernel_bytes_ = filled(header.templates.kernel, fixed_values(header)).size();
}

PromptWriter::LeftOut PromptWriter::left_out(std::size_t other_bytes) const {
  const auto most = static_cast<std::size_t>(header_.settings.prompt_tokens) * 4;
  const std::size_t fixed = other_bytes + reserve_bytes;
  const std::size_t limit = most > fixed ? most - fixed : 0;
  std::size_t size = bytes_of(survivors_) + bytes_of(bank_) + bytes_of(library_) +
                     history_.log_sums_.back() + history_.failed_.sums.back() +
                     history_.passed_.sums.back();
  LeftOut out;
  out.logs = drop(history_.log_sums_, limit, size);
  out.failed = drop(history_.failed_.sums, limit, size);
  out.bank = drop(sums_from_the_end(bank_), limit, size);
  out.passed = drop(history_.passed_.sums, limit, size);
  if (survivors_.size() > 1) {
    out.survivors =
        drop(sums_from_the_end(std::vector<std::string>(survivors_.begin() + 1, survivors_.end())),
             limit, size);
  }
  out.library = drop(sums_from_the_end(library_), limit, size);
  out.fastest = size > limit && !survivors_.empty();
  return out;
}

std::string PromptWriter::seeds_text(const LeftOut& left_out) const {
  std::string text;
  const auto show = [&](const std::vector<std::string>& sections, std::size_t begin,
                        std::size_t dropped) {
    for (std::size_t i = begin; i + dropped < sections.size(); ++i) text += sections[i];
  };
  show(survivors_, left_out.fastest ? 1 : 0, left_out.survivors);
  show(bank_, 0, left_out.bank);
  show(library_, 0, left_out.library);
  const std::size_t dropped =
      left_out.survivors + left_out.bank + left_out.library + (left_out.fastest ? 1 : 0);
  if (dropped > 0) text += "(" + std::to_string(dropped) + " more left out for length)\n";
  return text.empty() ? "None: start from scratch.\n" : text;
}

std::string PromptWriter::history_text(const LeftOut& left_out) const {
  std::string text;
  text.reserve(reserve_bytes + history_.log_sums_.back() - history_.log_sums_[left_out.logs] +
               history_.failed_.sums.back() - history_.failed_.sums[left_out.failed] +
               history_.passed_.sums.back() - history_.passed_.sums[left_out.passed]);
  const std::size_t dropped = left_out.failed + left_out.passed;
  if (dropped > 0) text += "(" + std::to_string(dropped) + " more left out for length)\n";
  const std::vector<std::size_t>& failed = history_.failed_.indices;
  const std::vector<std::size_t>& passed = history_.passed_.indices;
  std::size_t f = left_out.failed;
  std::size_t p = left_out.passed;
  while (f < failed.size() || p < passed.size()) {
    const bool next_failed = p == passed.size() || (f < failed.size() && failed[f] < passed[p]);
    const std::size_t index = next_failed ? failed[f++] : passed[p++];
    text += history_.lines_[index].entry;
    if (index >= left_out.logs) text += history_.lines_[index].log;
  }
  return text.empty() ? "Nothing yet.\n" : text;
}

PromptText PromptWriter::ideas(int idea_count) const {
  Values values = fixed_values(header_);
  values["idea_count"] = std::to_string(idea_count);
  const LeftOut out = left_out(filled(header_.templates.ideas, values).size());
  values["seeds"] = seeds_text(out);
  values["history"] = history_text(out);
  return filled(header_.templates.ideas, values);
}

PromptText PromptWriter::kernel(const Idea& idea, int branch) {
  const Values values{
      {"idea", idea.title == idea.text ? idea.text : idea.title + "\n" + idea.text},
      {"branch", std::to_string(branch) + " of " + std::to_string(header_.settings.branches)}};
  const LeftOut out =
      left_out(kernel_bytes_ + values.at("idea").size() + values.at("branch").size());
  const auto [frame, is_new] = frames_.try_emplace(out);
  if (is_new) frame->second = make_frame(out);
  std::string rest;
  for (const Piece& piece : frame->second.rest) {
    rest += piece.is_placeholder ? values.at(piece.text) : piece.text;
  }
  return {frame->second.beginning, std::move(rest)};
}

/// Everything but the idea and the branch is filled in.
PromptWriter::Frame PromptWriter::make_frame(const LeftOut& out) const {
  Values values = fixed_values(header_);
  values["seeds"] = seeds_text(out);
  values["history"] = history_text(out);
  std::string beginning;
  Frame frame;
  const auto add = [&](std::string_view text) {
    if (frame.rest.empty()) {
      beginning += text;
    } else {
      frame.rest.push_back({std::string(text), false});
    }
  };
  walk_template(header_.templates.kernel, add, [&](std::string_view name) {
    const auto value = values.find(name);
    if (value != values.end()) {
      add(value->second);
    } else {
      frame.rest.push_back({std::string(name), true});
    }
  });
  frame.beginning = std::make_shared<PromptText::Beginning>(std::move(beginning));
  return frame;
}

Result<Ok> check_templates(const Header& header, const std::string& where) {
  const Templates& templates = header.templates;
  if (auto good = check_template(templates.ideas, ideas_placeholders, where + ": templates: ideas");
      !good) {
    return good;
  }
  if (auto good =
          check_template(templates.kernel, kernel_placeholders, where + ": templates: kernel");
      !good) {
    return good;
  }
  const std::size_t longest = std::max(filled(templates.ideas, fixed_values(header)).size(),
                                       filled(templates.kernel, fixed_values(header)).size());
  const std::int64_t needed = estimated_tokens(longest + max_idea_bytes + 256 + reserve_bytes);
  if (needed > header.settings.prompt_tokens) {
    return Error{where + ": settings: prompt_tokens: the shortest prompt has up to " +
                 std::to_string(needed) + " tokens, the limit is " +
                 std::to_string(header.settings.prompt_tokens)};
  }
  return Ok{};
}

}  // namespace rekernel

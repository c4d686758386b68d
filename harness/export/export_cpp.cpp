// An export for C++: a header made of templates/kernel.h.in, whose launch() is the plan written
// out.

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/compile/compile.h"
#include "harness/export/export.h"

namespace rekernel {

namespace {

const char* element_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "__half";
    case DType::bf16:
      return "__nv_bfloat16";
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::u8:
      return "std::uint8_t";
    case DType::i32:
      return "std::int32_t";
    case DType::f8e4m3:
      return "__nv_fp8_e4m3";
    case DType::f8e5m2:
      return "__nv_fp8_e5m2";
    case DType::i8:
      return "std::int8_t";
    case DType::i64:
      return "std::int64_t";
    case DType::boolean:
      return "bool";
  }
  return "";
}

const char* tensor_map_type_name(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "CU_TENSOR_MAP_DATA_TYPE_FLOAT16";
    case DType::bf16:
      return "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16";
    case DType::f32:
      return "CU_TENSOR_MAP_DATA_TYPE_FLOAT32";
    case DType::f64:
      return "CU_TENSOR_MAP_DATA_TYPE_FLOAT64";
    case DType::u8:
    case DType::i8:
    case DType::boolean:
    case DType::f8e4m3:
    case DType::f8e5m2:
      return "CU_TENSOR_MAP_DATA_TYPE_UINT8";
    case DType::i32:
      return "CU_TENSOR_MAP_DATA_TYPE_INT32";
    case DType::i64:
      return "CU_TENSOR_MAP_DATA_TYPE_INT64";
  }
  return "";
}

const char* swizzle_name(TensorMapArgument::Swizzle swizzle) {
  switch (swizzle) {
    case TensorMapArgument::Swizzle::none:
      return "CU_TENSOR_MAP_SWIZZLE_NONE";
    case TensorMapArgument::Swizzle::b32:
      return "CU_TENSOR_MAP_SWIZZLE_32B";
    case TensorMapArgument::Swizzle::b64:
      return "CU_TENSOR_MAP_SWIZZLE_64B";
    case TensorMapArgument::Swizzle::b128:
      return "CU_TENSOR_MAP_SWIZZLE_128B";
  }
  return "";
}

const char* promotion_name(TensorMapArgument::L2Promotion promotion) {
  switch (promotion) {
    case TensorMapArgument::L2Promotion::none:
      return "CU_TENSOR_MAP_L2_PROMOTION_NONE";
    case TensorMapArgument::L2Promotion::b64:
      return "CU_TENSOR_MAP_L2_PROMOTION_L2_64B";
    case TensorMapArgument::L2Promotion::b128:
      return "CU_TENSOR_MAP_L2_PROMOTION_L2_128B";
    case TensorMapArgument::L2Promotion::b256:
      return "CU_TENSOR_MAP_L2_PROMOTION_L2_256B";
  }
  return "";
}

template <class Numbers>
std::string list_of(const Numbers& numbers) {
  std::vector<std::string> words;
  for (const auto number : numbers) words.push_back(std::to_string(number));
  return "{" + joined(words) + "}";
}

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// A raw string literal; its delimiter does not occur in the text.
std::string raw_literal(const std::string& text) {
  std::string delimiter = "cuda";
  for (int i = 0; text.find(")" + delimiter + "\"") != std::string::npos; ++i) {
    delimiter = "cuda" + std::to_string(i);
  }
  return "R\"" + delimiter + "(" + text + ")" + delimiter + "\"";
}

/// An ordinary string literal.
std::string literal(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string scalar_text(const ScalarArgument& scalar) {
  constexpr const char* types[] = {"std::int32_t",  "std::uint32_t", "std::int64_t",
                                   "std::uint64_t", "float",         "double"};
  const std::string type = types[scalar.index()];
  return std::visit(
      [&](auto value) -> std::string {
        using Value = decltype(value);
        if constexpr (std::is_same_v<Value, float>) {
          return type + "{" + printed("%a", value) + "f}";
        } else if constexpr (std::is_same_v<Value, double>) {
          return type + "{" + printed("%a", value) + "}";
        } else if constexpr (std::is_same_v<Value, std::int64_t>) {
          // The least has no literal.
          if (value == std::numeric_limits<std::int64_t>::min()) return "INT64_MIN";
          return type + "{" + std::to_string(value) + "}";
        } else {
          return type + "{" + std::to_string(value) + (std::is_unsigned_v<Value> ? "u}" : "}");
        }
      },
      scalar);
}

std::string tensor_map_text(const TensorMapArgument& map) {
  std::vector<std::int64_t> element_strides = map.element_strides;
  if (element_strides.empty()) element_strides.assign(map.dims.size(), 1);
  return std::string("detail::tensor_map(") + tensor_map_type_name(map.dtype) + ", buffer_" +
         map.buffer + " + " + std::to_string(map.offset_bytes) + ",\n              " +
         list_of(map.dims) + ", " + list_of(map.strides_bytes) + ", " + list_of(map.box) + ", " +
         list_of(element_strides) + ",\n              " + swizzle_name(map.swizzle) + ", " +
         promotion_name(map.l2_promotion) + ",\n              " +
         (map.fill_nan ? "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA"
                       : "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE") +
         ")";
}

std::string argument_text(const Argument& argument) {
  if (const auto* buffer = std::get_if<BufferArgument>(&argument)) {
    return "buffer_" + buffer->buffer;
  }
  if (const auto* scalar = std::get_if<ScalarArgument>(&argument)) return scalar_text(*scalar);
  return tensor_map_text(std::get<TensorMapArgument>(argument));
}

/// A row of the table `plan`. What runs before the first is the caller's: nothing overlaps with it.
std::string plan_row(const KernelLaunch& launch, bool first) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  std::vector<std::int64_t> grid;
  for (const GridExtent& extent : launch.grid) grid.push_back(extent.count);
  return "    {\"" + launch.kernel + "\", {" + list_of(grid) + "}, " + flag(launch.grid[0].per_sm) +
         ", {" + list_of(launch.block) + "}, {" + list_of(launch.cluster) + "}, " +
         std::to_string(launch.dynamic_shared_bytes) + ", " + flag(launch.cooperative) + ", " +
         flag(launch.programmatic_launch && !first) + ", " +
         std::to_string(launch.shared_memory_carveout.value_or(-1)) + "},\n";
}

bool has_tensor_map(const Program& program) {
  for (const Step& step : program.steps) {
    const auto* launch = std::get_if<KernelLaunch>(&step);
    if (!launch) continue;
    for (const Argument& argument : launch->args) {
      if (std::holds_alternative<TensorMapArgument>(argument)) return true;
    }
  }
  return false;
}

/// The statements of launch().
std::string launch_body(const ExportSource& source) {
  const Program& program = source.candidate.program;
  std::string text;
  for (const Tensor& tensor : source.problem.tensors) {
    text += "  [[maybe_unused]] const CUdeviceptr buffer_" + tensor.name +
            " =\n      detail::checked(\"" + tensor.name + "\", " + tensor.name + ", " +
            tensor.name + "_shape);\n";
  }
  if (!program.workspaces.empty()) {
    text += "  detail::check_address(\"workspace\", workspace);\n";
  }
  const WorkspaceLayout layout = workspace_layout(program);
  for (std::size_t i = 0; i < program.workspaces.size(); ++i) {
    text += "  [[maybe_unused]] const CUdeviceptr buffer_" + program.workspaces[i].name +
            " =\n      reinterpret_cast<CUdeviceptr>(workspace) + " +
            std::to_string(layout.offsets[i]) + ";\n";
  }
  std::size_t kernels = 0;
  for (const Step& step : program.steps) {
    if (const auto* memset = std::get_if<Memset>(&step)) {
      const auto found =
          std::find_if(program.workspaces.begin(), program.workspaces.end(),
                       [&](const Workspace& one) { return one.name == memset->buffer; });
      const std::int64_t bytes =
          memset->bytes ? memset->bytes : found->bytes - memset->offset_bytes;
      text += "  detail::check(cuMemsetD8Async(buffer_" + memset->buffer + " + " +
              std::to_string(memset->offset_bytes) + ", " + std::to_string(memset->value) + ", " +
              std::to_string(bytes) + ", stream),\n                \"cuMemsetD8Async\");\n";
      continue;
    }
    text += "  enqueue(" + std::to_string(kernels++) + ", stream";
    for (const Argument& argument : std::get<KernelLaunch>(step).args) {
      text += ",\n          " + argument_text(argument);
    }
    text += ");\n";
  }
  return text;
}

std::string plan_rows(const Program& program) {
  std::string rows;
  for (const Step& step : program.steps) {
    if (const auto* launch = std::get_if<KernelLaunch>(&step)) {
      rows += plan_row(*launch, &step == &program.steps.front());
    }
  }
  return rows;
}

/// Machine code as 64-bit numbers, four to a line.
std::string image_text(const ExportedCode& code) {
  std::string text = std::string("alignas(16) inline constexpr std::uint64_t ") +
                     to_string(code.target) + "_code[] = {";
  for (std::size_t i = 0; i < code.cubin.size(); i += 8) {
    std::uint64_t word = 0;  // the machine's own order: GPUs' hosts have the least byte first
    std::memcpy(&word, code.cubin.data() + i, std::min<std::size_t>(8, code.cubin.size() - i));
    char number[24];
    std::snprintf(number, sizeof number, "0x%016llx,", static_cast<unsigned long long>(word));
    text += (i % 32 == 0 ? "\n    " : " ") + std::string(number);
  }
  return text + "};\n";
}

std::string cubin_part(const ExportSource& source, const TemplateWords& words) {
  TemplateWords all = words;
  std::vector<std::string> names;
  for (const ExportedCode& code : source.codes) {
    const ComputeCapability capability = code.target->capability;
    names.emplace_back(to_string(code.target));
    all["images"] += image_text(code) + "\n";
    all["codes"] += "    {" + std::to_string(capability.major) + ", " +
                    std::to_string(capability.minor) + ", " +
                    (code.target->family_specific ? "true" : "false") + ", " + names.back() +
                    "_code},\n";
  }
  all["targets"] = joined(names);
  return filled("cubin.h.in", all);
}

std::string nvrtc_part(const ExportSource& source, const TemplateWords& words) {
  TemplateWords all = words;
  all["source"] = raw_literal(source.candidate.program.source);
  all["problem_header"] = raw_literal(problem_header(source.problem));
  all["options"];
  for (const std::string& option : source_options(source.candidate.program.compile)) {
    all["options"] += "      " + literal(option) + ",\n";
  }
  return filled("nvrtc.h.in", all);
}

std::string parameters(const Problem& problem, bool with_workspace, std::size_t indent) {
  const std::string separator = ",\n" + std::string(indent, ' ');
  std::string text = "CUstream stream";
  for (const Tensor& tensor : problem.tensors) {
    text += separator + "Tensor<" + std::string(tensor.role == Role::input ? "const " : "") +
            element_type(tensor.dtype) + ", " + std::to_string(tensor.shape.size()) + "> " +
            tensor.name;
  }
  return text + (with_workspace ? separator + "void* workspace" : "");
}

std::string example_arguments(const Problem& problem, bool with_workspace) {
  std::string text = "stream";
  for (const Tensor& tensor : problem.tensors) {
    text += ",\n//                 {" + tensor.name + ", " + list_of(tensor.shape) + "}";
  }
  return text + (with_workspace ? ",\n//                 workspace" : "");
}

bool has_element(const Problem& problem, DType dtype) {
  return std::any_of(problem.tensors.begin(), problem.tensors.end(),
                     [&](const Tensor& tensor) { return tensor.dtype == dtype; });
}

std::string headers_of_types(const Problem& problem, bool nvrtc) {
  return std::string(has_element(problem, DType::bf16) ? "#include <cuda_bf16.h>\n" : "") +
         (has_element(problem, DType::f16) ? "#include <cuda_fp16.h>\n" : "") +
         (has_element(problem, DType::f8e4m3) || has_element(problem, DType::f8e5m2)
              ? "#include <cuda_fp8.h>\n"
              : "") +
         (nvrtc ? "#include <nvrtc.h>\n" : "");
}

void add_header_words(const ExportSource& source, TemplateWords& words) {
  const Candidate& candidate = source.candidate;
  const Program& program = candidate.program;
  const bool nvrtc = source.codes.empty();
  const bool with_workspace = !program.workspaces.empty();
  const std::string name = export_name(candidate);
  const ComputeCapability capability = candidate.arch->capability;
  const std::string number =
      std::to_string(capability.major) + " && minor == " + std::to_string(capability.minor);
  words["file"] = name;
  words["namespace"] = name;
  words["guard"] = "REKERNEL_EXPORT_" + upper_case(name) + "_H";
  words["idea"] = comment(candidate.idea, "// ");
  words["origin_comment"] = comment(words["origin"] + ". Do not edit it: export it again.", "// ");
  words["link_options"] = nvrtc ? "-lcuda -lnvrtc" : "-lcuda";
  words["includes"] = headers_of_types(source.problem, nvrtc);
  words["example_arguments"] = example_arguments(source.problem, with_workspace);
  words["launch_parameters"] = parameters(source.problem, with_workspace, 14);
  words["launch_parameters_again"] = parameters(source.problem, with_workspace, 27);
  words["workspace_bytes"] = std::to_string(workspace_layout(program).bytes);
  words["kernel_count"] = std::to_string(
      std::count_if(program.steps.begin(), program.steps.end(),
                    [](const Step& step) { return std::holds_alternative<KernelLaunch>(step); }));
  words["runs_on"] = candidate.arch->family_specific
                         ? "major == " + number
                         : "major > " + std::to_string(capability.major) +
                               " || (major == " + std::to_string(capability.major) +
                               " && minor >= " + std::to_string(capability.minor) + ")";
  words["plan"] = plan_rows(program);
  words["launch_body"] = launch_body(source);
  words["tensor_map_function"] = has_tensor_map(program) ? filled("tensor_map.h.in", words) : "";
  for (const Tensor& tensor : source.problem.tensors) {
    words["shapes"] += (words["shapes"].empty() ? "" : "\n") +
                       ("inline constexpr std::array<std::int64_t, " +
                        std::to_string(tensor.shape.size()) + "> ") +
                       tensor.name + "_shape{" + list_of(tensor.shape) + "};";
  }
  words["code"] = nvrtc ? nvrtc_part(source, words) : cubin_part(source, words);
  if (nvrtc) {
    words["constructor_declaration"] =
        "  /// Compiles the code for the device of the context that is current. `cuda_headers`: "
        "the\n"
        "  /// folder of cuda_fp16.h; $CUDA_HOME/include or /usr/local/cuda/include if empty.\n"
        "  explicit Kernel(const std::string& cuda_headers = {});";
    words["constructor_parameters"] = "const std::string& cuda_headers";
    words["load"] =
        "  const std::string code = detail::compiled(major, minor, cuda_headers);\n"
        "  detail::check(cuModuleLoadData(&module_, code.data()), \"cuModuleLoadData\");";
  } else {
    words["constructor_declaration"] =
        "  /// Loads the code into the context that is current.\n  Kernel();";
    words["constructor_parameters"] = "";
    words["load"] =
        "  detail::check(cuModuleLoadData(&module_, detail::machine_code(major, minor)),\n"
        "                \"cuModuleLoadData\");";
  }
}

std::string distribution_text(const Distribution& distribution) {
  const auto number = [](double value) { return printed("%.17g", value); };
  switch (distribution.kind) {
    case Distribution::Kind::normal:
      return "std::normal_distribution<double>(" + number(distribution.a) + ", " +
             number(distribution.b) + ")";
    case Distribution::Kind::uniform:
      return "std::uniform_real_distribution<double>(" + number(distribution.a) + ", " +
             number(distribution.b) + ")";
    case Distribution::Kind::constant:
      return "[](auto&) { return " + number(distribution.a) + "; }";
    case Distribution::Kind::integers:
      return "std::uniform_int_distribution<long long>(" + number(distribution.a) + ", " +
             number(distribution.b - 1) + ")";
    case Distribution::Kind::choice: {
      std::vector<std::string> choices;
      for (const double choice : distribution.choices) choices.push_back(number(choice));
      return "[](auto& random) {\n    constexpr double values[] = {" + joined(choices) +
             "};\n    return values[random() % " + std::to_string(choices.size()) + "];\n  }";
    }
  }
  return "";
}

/// What the test does with half-precision numbers, where there are any.
void add_half_words(const Problem& problem, TemplateWords& words) {
  words["half_functions"];
  words["half_specialisations"];
  for (const auto& [dtype, conversion] :
       {std::pair(DType::f16, "half"), std::pair(DType::bf16, "bfloat16")}) {
    if (!has_element(problem, dtype)) continue;
    const std::string type = element_type(dtype);
    words["half_functions"] +=
        "double value_of(" + type + " element) { return __" + conversion + "2float(element); }\n";
    words["half_specialisations"] += "template <>\n" + type + " element_of<" + type +
                                     ">(float value) {\n  return __float2" + conversion +
                                     "(value);\n}\n";
  }
}

/// The test's statements about an output.
void add_output_words(const Tensor& output, TemplateWords& words) {
  const std::string type = element_type(output.dtype);
  const std::string count = "elements(exported::" + output.name + "_shape)";
  for (const std::string side : {"ours_", "theirs_"}) {
    words["test_outputs"] +=
        "  const Memory " + side + output.name + "(" + count + " * sizeof(" + type + "));\n";
  }
  words["test_poison"] += "  check(cuMemsetD8(ours_" + output.name + ".address(), 0xff, " + count +
                          " * sizeof(" + type + ")), \"cuMemsetD8\");\n";
  const char* kind = output.comparison == Comparison::close   ? "Kind::close"
                     : output.comparison == Comparison::equal ? "Kind::equal"
                                                              : "Kind::index";
  words["test_comparisons"] += "  difference.add<" + type + ">(ours_" + output.name + ", theirs_" +
                               output.name + ", " + count + ", " + kind + ");\n";
}

void add_input_words(const Tensor& input, unsigned seed, TemplateWords& words) {
  const std::string shape = "exported::" + input.name + "_shape";
  const std::string type = element_type(input.dtype);
  const std::string memory = "given_" + input.name;
  words["test_inputs"] += "  const Memory " + memory + "(elements(" + shape + ") * sizeof(" + type +
                          "));\n  upload<" + type + ">(" + memory + ", drawn(elements(" + shape +
                          "), " + std::to_string(seed) + ", " +
                          distribution_text(input.distribution) + "));\n";
}

/// What the definition is called where it stands in for a library.
Candidate reference_candidate(const Problem& problem) {
  Candidate candidate = scaffold_candidate(problem, "definition");
  candidate.idea = "The definition and nothing that makes it fast: what the test compares with.";
  return candidate;
}

void add_definition_words(const Problem& problem, TemplateWords& words) {
  const std::string name = export_name(reference_candidate(problem));
  std::vector<std::string> parameters;
  std::vector<std::string> arguments;
  for (const Tensor& tensor : problem.tensors) {
    parameters.push_back(std::string(tensor.role == Role::input ? "const " : "") +
                         element_type(tensor.dtype) + "* " + tensor.name);
    arguments.push_back("{" + tensor.name + ", " + name + "::" + tensor.name + "_shape}");
  }
  if (!problem.scaffold.workspaces.empty()) arguments.emplace_back("workspace_.as<void>()");
  words["reference"] = name;
  words["reference_parameters"] = joined(parameters);
  words["reference_arguments"] = joined(arguments);
  words["library_includes"] = "#include \"" + name + ".h\"\n" + words["library_includes"];
}

void add_test_words(const ExportSource& source, TemplateWords& words) {
  const LibraryFunction& library = source.library;
  words.insert(library.cpp_words.begin(), library.cpp_words.end());
  words["output_type"] = element_type(source.problem.outputs().front()->dtype);
  const bool needs_nvrtc = library.cpp.empty() && !source.codes.empty();
  words["test_link_options"] = std::string(library.cudnn ? "-lcudnn " : "") +
                               (library.cublas ? "-lcublas " : "") + words["link_options"] +
                               (needs_nvrtc ? " -lnvrtc" : "");
  words["library_includes"] = std::string(library.cublas ? "#include <cublas_v2.h>\n" : "") +
                              (library.cudnn ? "#include <cudnn.h>\n" : "") + "\n";
  add_half_words(source.problem, words);
  if (library.cpp.empty()) {
    add_definition_words(source.problem, words);
    words["library"] = filled("libraries/definition.h.in", words);
  } else {
    words["library"] = filled(library.cpp, words);
  }

  std::string arguments;
  std::string library_arguments;
  unsigned seed = 1;
  for (const char* word : {"test_inputs", "test_tensors", "test_outputs", "test_poison",
                           "test_comparisons", "resized"}) {
    words[word];
  }
  for (const Tensor& tensor : source.problem.tensors) {
    const std::string shape = "exported::" + tensor.name + "_shape";
    const std::string cast = ".as<" + std::string(element_type(tensor.dtype)) + ">()";
    const bool is_input = tensor.role == Role::input;
    if (is_input) {
      add_input_words(tensor, seed++, words);
    } else {
      add_output_words(tensor, words);
    }
    // The first tensor that has an extent is the one that is given another.
    const bool resized = words["resized"].empty() && !tensor.shape.empty();
    if (resized) {
      words["resized"] = tensor.name;
      words["test_tensors"] = "    auto resized = " + shape + ";\n    resized[0] = rows;\n";
    }
    arguments += ", {" + std::string(is_input ? "given_" : "ours_") + tensor.name + cast + ", " +
                 (resized ? "resized" : shape) + "}";
    library_arguments += (library_arguments.empty() ? "" : ", ") +
                         std::string(is_input ? "given_" : "theirs_") + tensor.name + cast;
  }
  if (!source.candidate.program.workspaces.empty()) arguments += ", workspace.as<void>()";
  words["test_arguments"] = arguments.substr(2);
  words["library_arguments"] = library_arguments;
}

}  // namespace

std::vector<ExportedFile> export_to_cpp(const ExportSource& source) {
  TemplateWords words = export_words(source);
  const std::string idea = words["idea"];
  add_header_words(source, words);
  add_test_words(source, words);
  std::vector<ExportedFile> files;
  files.push_back({words["file"] + ".h", filled("kernel.h.in", words)});
  if (source.library.cpp.empty()) {
    // NVRTC compiles it where the test runs: it is no part of what is exported.
    const Candidate definition = reference_candidate(source.problem);
    const RecordedJudgement none{source.judgement.tolerance, {}};
    const ExportSource of_definition{definition, source.problem, source.library, {}, none};
    TemplateWords other = export_words(of_definition);
    add_header_words(of_definition, other);
    files.push_back({other["file"] + ".h", filled("kernel.h.in", other)});
  }
  files.push_back({"test.cpp", filled("test.cpp.in", words)});
  words["idea"] = markdown_text(idea);
  words["origin"] = markdown_text(words["origin"]);
  files.push_back({"README.md", filled("README.cpp.md.in", words)});
  return files;
}

}  // namespace rekernel

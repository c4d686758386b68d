#include "harness/base/judging_sources.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "harness/base/files.h"
#include "harness/base/source_tokens.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t shown_digits = 16;
constexpr std::array folders = {"ops",
                                "ops/definition",
                                "reference",
                                "harness/base",
                                "harness/problems",
                                "harness/gpu",
                                "harness/process",
                                "harness/candidate",
                                "harness/compile",
                                "harness/device",
                                "harness/evaluation"};
constexpr std::array endings = {".cpp", ".h", ".py"};
constexpr const char* folder_of_problems = "ops/problems";
/// What a problem's file says to people alone.
constexpr std::array<std::string_view, 2> not_judging = {"title", "source"};

/// What a reference has for itself.
struct Own {
  const char* id;
  std::vector<std::string> files;
};

/// What every library's reference has: how a definition is recognised, and what is timed.
const std::vector<std::string>& of_all_libraries() {
  static const std::vector<std::string> files = {
      "reference/engine_choice.cpp", "reference/engine_choice.h", "reference/normal_form.cpp",
      "reference/normal_form.h",     "reference/recognition.cpp", "reference/recognition.h",
      "reference/shapes.h",          "reference/shapes.cpp",      "reference/sum_of_products.cpp",
      "reference/sum_of_products.h",
  };
  return files;
}

std::vector<std::string> of_library(std::vector<std::string> files) {
  files.insert(files.end(), of_all_libraries().begin(), of_all_libraries().end());
  return files;
}

const std::vector<Own>& own_of_references() {
  static const std::vector<std::string> cublas = of_library(
      {"reference/cublas.cpp", "reference/cublas.h", "reference/cublas_lt.cpp",
       "reference/gemm_call.cpp", "reference/gemm_call.h", "reference/recognise_product.cpp"});
  static const auto of_cudnn = [](std::vector<std::string> files, bool graph) {
    files.insert(files.end(), {"reference/cudnn.cpp", "reference/cudnn.h"});
    if (graph) files.insert(files.end(), {"reference/cudnn_graph.cpp", "reference/cudnn_graph.h"});
    return of_library(std::move(files));
  };
  static const auto of_rows = [](const char* file, bool graph) {
    return of_cudnn({file, "reference/recognise_rows.cpp"}, graph);
  };
  static const std::vector<std::string> pooling = {
      "reference/cudnn_pooling.cpp", "reference/cudnn_pooling.h", "reference/recognise_windows.cpp",
      "reference/window_axes.cpp", "reference/window_axes.h"};
  static const std::vector<std::string> convolution = [] {
    std::vector<std::string> files = pooling;  // it may be followed by one
    files.emplace_back("reference/cudnn_convolution.cpp");
    return of_cudnn(std::move(files), true);
  }();
  static const std::vector<std::string> pytorch = {"reference/expression.py",
                                                   "reference/pytorch.cpp", "reference/pytorch.h",
                                                   "reference/pytorch.py"};
  static const std::vector<Own> table = {
      {"cublas_fp32", cublas},
      {"cublas_tf32", cublas},
      {"cublas_fp16", cublas},
      {"cublas_bf16", cublas},
      {"cublas_fp8", cublas},
      {"cudnn_fp32", convolution},
      {"cudnn_tf32", convolution},
      {"cudnn_pooling", of_cudnn(pooling, false)},
      {"cudnn_softmax", of_rows("reference/cudnn_softmax.cpp", false)},
      {"cudnn_layernorm", of_rows("reference/cudnn_layernorm.cpp", true)},
      {"cudnn_batchnorm", of_rows("reference/cudnn_batchnorm.cpp", false)},
      {"cudnn_reduction", of_rows("reference/cudnn_elements.cpp", false)},
      {"cudnn_activation", of_rows("reference/cudnn_elements.cpp", false)},
      {"cudnn_attention",
       of_cudnn({"reference/cudnn_attention.cpp", "reference/recognise_attention.cpp"}, true)},
      {"pytorch_eager", pytorch},
      {"pytorch_compile", pytorch},
      {"pytorch_eager_fp32", pytorch},
  };
  return table;
}

/// Lists and declarations of what stands elsewhere, and what makes these digests: an entry more
/// changes no verdict.
const std::set<std::string>& judging_nothing() {
  static const std::set<std::string> files = {
      // Definitions beside PyTorch's expressions.
      "reference/agreement.cpp",
      "reference/agreement.h",
      "reference/agreement.py",
      "harness/problems/small_instance.cpp",
      "harness/problems/small_instance.h",
      "harness/problems/catalog.cpp",
      "harness/problems/catalog.h",
      "reference/catalog.cpp",
      "reference/library_references.h",
      "reference/library_function.cpp",  // what the test of an exported kernel calls
      "reference/library_function.h",
      "harness/base/harness_digest.cpp",
      "harness/base/harness_digest.h",
      "harness/base/judging_sources.cpp",
      "harness/base/judging_sources.h",
      "harness/base/source_tokens.cpp",
      "harness/base/source_tokens.h",
  };
  return files;
}

using FileDigests = std::map<std::string, std::string>;

Result<FileDigests> file_digests(const fs::path& root) {
  FileDigests digests;
  for (const char* folder : folders) {
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(root / folder, failure)) {
      const fs::path ending = entry.path().extension();
      if (std::find(endings.begin(), endings.end(), ending) == endings.end()) continue;
      const Result<std::string> content = read_file(entry.path());
      if (!content) return content.error();
      const std::string file = (fs::path(folder) / entry.path().filename()).string();
      digests[file] = sha256_hex(ending == ".py" ? python_tokens(*content) : cpp_tokens(*content));
    }
    if (failure) return Error{(root / folder).string() + ": cannot be read: " + failure.message()};
  }
  return digests;
}

/// By content alone: names and order of the files do not count.
std::string digest_of(std::vector<std::string> contents) {
  std::sort(contents.begin(), contents.end());
  std::string text;
  for (const std::string& content : contents) text += content + "\n";
  return sha256_hex(text).substr(0, shown_digits);
}

Result<std::map<std::string, std::string>> digests_of(const std::vector<Own>& table,
                                                      const FileDigests& files,
                                                      const fs::path& root) {
  std::map<std::string, std::string> digests;
  for (const Own& own : table) {
    std::vector<std::string> contents;
    for (const std::string& file : own.files) {
      const auto found = files.find(file);
      if (found == files.end()) {
        return Error{(root / file).string() + ": not there: expected what decides about " + own.id +
                     ", as harness/base/judging_sources.cpp says"};
      }
      contents.push_back(found->second);
    }
    digests[own.id] = digest_of(std::move(contents));
  }
  return digests;
}

}  // namespace

Result<HarnessDigests> harness_digests_of(const fs::path& root) {
  const Result<FileDigests> files = file_digests(root);
  if (!files) return files.error();
  Result<std::map<std::string, std::string>> references =
      digests_of(own_of_references(), *files, root);
  if (!references) return references.error();

  // What nobody claims judges every row: a file that was forgotten errs on that side.
  std::set<std::string> claimed = judging_nothing();
  for (const Own& own : own_of_references()) claimed.insert(own.files.begin(), own.files.end());
  std::vector<std::string> judge;
  for (const auto& [file, digest] : *files) {
    if (!claimed.contains(file)) judge.push_back(digest);
  }
  return HarnessDigests{digest_of(std::move(judge)), std::move(*references)};
}

std::string problem_digest(std::string_view text) {
  return sha256_hex(json_tokens(text, not_judging)).substr(0, shown_digits);
}

Result<std::map<std::string, std::string>> problem_digests_of(const fs::path& root) {
  std::map<std::string, std::string> digests;
  std::error_code failure;
  for (const auto& group : fs::directory_iterator(root / folder_of_problems, failure)) {
    if (!group.is_directory()) continue;
    for (const auto& file : fs::directory_iterator(group.path(), failure)) {
      if (file.path().extension() != ".json") continue;
      const Result<std::string> text = read_file(file.path());
      if (!text) return text.error();
      digests[file.path().stem().string()] = problem_digest(*text);
    }
  }
  if (failure) {
    return Error{(root / folder_of_problems).string() + ": cannot be read: " + failure.message()};
  }
  return digests;
}

Result<std::vector<fs::path>> judging_sources(const fs::path& root) {
  const Result<FileDigests> files = file_digests(root);
  if (!files) return files.error();
  std::vector<fs::path> sources;
  for (const char* folder : folders) sources.push_back(root / folder);
  for (const auto& [file, digest] : *files) sources.push_back(root / file);
  return sources;
}

}  // namespace rekernel

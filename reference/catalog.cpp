#include <array>
#include <stdexcept>

#include "reference/cudnn.h"
#include "reference/library_references.h"
#include "reference/reference.h"

namespace rekernel {

namespace {

struct Entry {
  const char* problem;
  const char* id;
  const char* title;
  LibraryReferenceMaker make;
};

/// The first of a problem is its headline.
constexpr std::array entries = {
    Entry{"matmul_fp32", "cublas_fp32", "cuBLAS, FP32 math", make_cublas_matmul},
    Entry{"matmul_fp32", "cublas_tf32", "cuBLAS, TF32 math", make_cublas_matmul},
    Entry{"conv2d", "cudnn_fp32", "cuDNN convolution, FP32 math", make_cudnn_convolution},
    Entry{"conv2d", "cudnn_tf32", "cuDNN convolution, TF32 math", make_cudnn_convolution},
    Entry{"softmax", "cudnn_softmax", "cuDNN softmax", make_cudnn_softmax},
    Entry{"layernorm", "cudnn_layernorm", "cuDNN layer norm", make_cudnn_layernorm},
    Entry{"conv2d_relu_maxpool", "cudnn_fp32",
          "cuDNN convolution with bias and ReLU, then max-pool, FP32 math", make_cudnn_convolution},
    Entry{"conv2d_relu_maxpool", "cudnn_tf32",
          "cuDNN convolution with bias and ReLU, then max-pool, TF32 math", make_cudnn_convolution},
    Entry{"matmul_fp16", "cublas_fp16", "cuBLAS, FP16 with FP32 accumulation", make_cublas_matmul},
    Entry{"attention_fp16", "cudnn_attention", "cuDNN attention, FP16 with FP32 accumulation",
          make_cudnn_attention},
    Entry{"attention_fp16_causal", "cudnn_attention",
          "cuDNN causal attention, FP16 with FP32 accumulation", make_cudnn_attention},
};

}  // namespace

std::vector<ReferenceInfo> references_of(std::string_view problem) {
  std::vector<ReferenceInfo> result;
  for (const Entry& entry : entries) {
    if (entry.problem != problem) continue;
    result.push_back({entry.id, entry.problem, entry.title, result.empty()});
  }
  return result;
}

std::optional<std::string> headline_id(std::string_view problem) {
  const std::vector<ReferenceInfo> references = references_of(problem);
  if (references.empty()) return std::nullopt;
  return references.front().id;
}

Result<std::unique_ptr<Runnable>> make_reference(const ReferenceInfo& info, const Problem& problem,
                                                 const Bindings& bindings, const Device& device) {
  for (const Entry& entry : entries) {
    if (entry.problem != info.problem || entry.id != info.id) continue;
    for (const Tensor& tensor : problem.tensors) {
      const auto bound = bindings.find(tensor.name);
      if (bound == bindings.end() || bound->second.bytes < tensor.bytes()) {
        return Error{info.id + ": tensor " + tensor.name + " needs a buffer of " +
                     std::to_string(tensor.bytes()) + " bytes"};
      }
    }
    device.make_current();
    try {
      Result<std::unique_ptr<Runnable>> runnable = entry.make(info, problem, bindings, device);
      if (!runnable) return Error{info.id + ": " + runnable.error().message};
      return runnable;
    } catch (const CudaError&) {
      throw;
    } catch (const std::runtime_error& error) {
      return Error{info.id + ": " + error.what()};
    }
  }
  return Error{"no reference " + info.id + " for problem " + info.problem};
}

void load_library_of(std::string_view id) {
  if (id.starts_with("cublas")) (void)cublas_version().ok();
  if (id.starts_with("cudnn")) (void)load_cudnn().ok();
}

std::vector<std::pair<std::string, std::string>> reference_library_versions() {
  std::vector<std::pair<std::string, std::string>> versions;
  if (Result<std::string> version = cublas_version()) versions.emplace_back("cuBLAS", *version);
  if (Result<const CudnnApi*> api = load_cudnn()) versions.emplace_back("cuDNN", (*api)->version());
  return versions;
}

}  // namespace rekernel

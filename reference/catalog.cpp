#include <algorithm>
#include <stdexcept>

#include "harness/problems/catalog.h"
#include "reference/cudnn.h"
#include "reference/library_references.h"
#include "reference/reference.h"

namespace rekernel {

namespace {

/// What a reference is called, and for people.
struct Name {
  std::string id, title;
};
using Names = std::vector<Name>;

Names in_fp32_and_tf32(const std::string& library, const std::string& title) {
  return {{library + "_fp32", title + ", FP32 math"}, {library + "_tf32", title + ", TF32 math"}};
}

// The first of a shape is the headline of a problem that has no other shape before it.

Names names_of(const MatrixProduct& product) {
  switch (product.type) {
    case DType::f16:
      return {{"cublas_fp16", "cuBLAS, FP16 with FP32 accumulation"}};
    case DType::bf16:
      return {{"cublas_bf16", "cuBLAS, BF16 with FP32 accumulation"}};
    case DType::f8e4m3:
      return {{"cublas_fp8", "cuBLAS, FP8 with FP32 accumulation"}};
    default:
      break;
  }
  Names names = in_fp32_and_tf32("cublas", "cuBLAS");
  // A matrix unit has nothing to do for a vector.
  if (product.batch == 1 && (product.m == 1 || product.n == 1)) names.pop_back();
  return names;
}

Names names_of(const Convolution& conv) {
  std::string title = conv.transposed ? "cuDNN transposed convolution" : "cuDNN convolution";
  // A bias alone goes without saying.
  if (conv.relu) title += conv.bias.empty() ? " with ReLU" : " with bias and ReLU";
  if (conv.pooling) title += ", then max-pool";
  return in_fp32_and_tf32("cudnn", title);
}

Names names_of(const Pooling& pooling) {
  return {{"cudnn_pooling", pooling.average ? "cuDNN average pooling" : "cuDNN max-pooling"}};
}

Names names_of(const Softmax& softmax) {
  switch (softmax.kind) {
    case Softmax::Kind::logarithm:
      return {{"cudnn_softmax", "cuDNN log softmax"}};
    case Softmax::Kind::backward:
      return {{"cudnn_softmax", "cuDNN softmax, backward"}};
    case Softmax::Kind::plain:
      break;
  }
  return {{"cudnn_softmax", "cuDNN softmax"}};
}

Names names_of(const LayerNorm&) { return {{"cudnn_layernorm", "cuDNN layer norm"}}; }

Names names_of(const BatchNorm& norm) {
  return {{"cudnn_batchnorm", norm.of_instances ? "cuDNN batch norm of each instance"
                                                : "cuDNN batch norm in training"}};
}

Names names_of(const Reduction&) { return {{"cudnn_reduction", "cuDNN reduction"}}; }

Names names_of(const Activation&) { return {{"cudnn_activation", "cuDNN activation"}}; }

Names names_of(const Attention& attention) {
  std::string title = "cuDNN ";
  if (attention.causal) title += attention.window > 0 ? "sliding-window " : "causal ";
  title += attention.lengths.empty() ? "attention" : "attention with lengths";
  return {{"cudnn_attention", title + (attention.type == DType::f16 ? ", FP16" : ", BF16") +
                                  " with FP32 accumulation"}};
}

/// A library's call that was refused is no defect, whatever the library says.
MadeReference made(const LibraryShape& shape, const LibraryRequest& request) {
  MadeReference reference =
      std::visit([&](const auto& one) { return make_library_reference(one, request); }, shape);
  if (!reference) return reference;
  const Stream stream;
  (*reference)->enqueue(stream.get());
  stream.synchronize();
  return reference;
}

}  // namespace

std::vector<ReferenceInfo> references_of(const Problem& problem) {
  std::vector<ReferenceInfo> result;
  for (const LibraryShape& shape : shapes_of(problem)) {
    for (Name& name : std::visit([](const auto& one) { return names_of(one); }, shape)) {
      result.push_back({std::move(name.id), problem.id, std::move(name.title), result.empty()});
    }
  }
  return result;
}

std::vector<ReferenceInfo> references_of(std::string_view problem) {
  const Problem* found = find_problem(problem);
  return found ? references_of(*found) : std::vector<ReferenceInfo>{};
}

std::optional<std::string> headline_id(std::string_view problem) {
  const std::vector<ReferenceInfo> references = references_of(problem);
  if (references.empty()) return std::nullopt;
  return references.front().id;
}

Result<std::unique_ptr<Runnable>> make_reference(const ReferenceInfo& info, const Problem& problem,
                                                 const Bindings& bindings, const Device& device) {
  for (const LibraryShape& shape : shapes_of(problem)) {
    const Names names = std::visit([](const auto& one) { return names_of(one); }, shape);
    if (std::none_of(names.begin(), names.end(),
                     [&](const Name& name) { return name.id == info.id; })) {
      continue;
    }
    for (const Tensor& tensor : problem.tensors) {
      const auto bound = bindings.find(tensor.name);
      if (bound == bindings.end() || bound->second.bytes < tensor.bytes()) {
        return Error{info.id + ": tensor " + tensor.name + " needs a buffer of " +
                     std::to_string(tensor.bytes()) + " bytes"};
      }
    }
    device.make_current();
    try {
      Result<std::unique_ptr<Runnable>> runnable =
          made(shape, {info.id, problem, bindings, device});
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

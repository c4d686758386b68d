#include "reference/cublas.h"

#include <limits>

#include "harness/gpu/library.h"
#include "reference/engine_choice.h"

namespace rekernel {

namespace {

Result<CublasApi> resolve_cublas() {
  // cuBLASLt first: cuBLAS itself needs it, and finds it in memory wherever it came from.
  Result<DynamicLibrary> lt = DynamicLibrary::open({"libcublasLt.so.13", "libcublasLt.so.12"});
  if (!lt) return lt.error();
  Result<DynamicLibrary> blas = DynamicLibrary::open({"libcublas.so.13", "libcublas.so.12"});
  if (!blas) return blas.error();
  CublasApi api;
  std::string missing;
#define REKERNEL_LOAD(name) \
  if (!blas->load(#name, api.name) && missing.empty()) missing = blas->path() + ": no " #name;
  REKERNEL_CUBLAS_FUNCTIONS(REKERNEL_LOAD)
  REKERNEL_LOAD(cublasGemmEx)
  REKERNEL_LOAD(cublasGemmStridedBatchedEx)
#undef REKERNEL_LOAD
#define REKERNEL_LOAD(name) \
  if (!lt->load(#name, api.name) && missing.empty()) missing = lt->path() + ": no " #name;
  REKERNEL_CUBLASLT_FUNCTIONS(REKERNEL_LOAD)
#undef REKERNEL_LOAD
  if (!missing.empty()) return Error{missing};
  return api;
}

constexpr const char* gemm_ex_call = "cublasGemmEx";

int as_int(std::int64_t value) {
  if (value > std::numeric_limits<int>::max()) {
    throw std::runtime_error(std::to_string(value) + " is more than cuBLAS's int holds");
  }
  return static_cast<int>(value);
}

/// The call that everybody makes: one product, several, or a vector's.
class PlainCall : public Runnable {
 public:
  PlainCall(const CublasApi& api, const BoundGemm& gemm, std::int64_t workspace_bytes)
      : api_(api), gemm_(gemm), workspace_(workspace_bytes) {
    cublasHandle_t handle = nullptr;
    api_.check(api_.cublasCreate_v2(&handle), "cublasCreate");
    handle_ = {handle, api_.cublasDestroy_v2};
    if (gemm.type == CUDA_R_32F) vector_ = gemv_call(gemm.call);
  }

  void enqueue(CUstream stream) override {
    if (!stream_known_ || stream != stream_) {
      // Setting the stream takes the workspace away, so both are set.
      api_.check(api_.cublasSetStream_v2(handle_.get(), stream), "cublasSetStream");
      api_.check(
          api_.cublasSetWorkspace_v2(handle_.get(), reinterpret_cast<void*>(workspace_.get()),
                                     static_cast<std::size_t>(workspace_.bytes())),
          "cublasSetWorkspace");
      stream_ = stream;
      stream_known_ = true;
    }
    if (vector_) {
      multiply_vector(*vector_);
    } else {
      multiply();
    }
  }

  std::string details() const override {
    if (vector_) return "cublasSgemv";
    std::string name = gemm_.call.batch > 1 ? "cublasGemmStridedBatchedEx" : gemm_ex_call;
    if (workspace_.bytes() != usual_workspace) {
      name += " workspace=" + std::to_string(workspace_.bytes() >> 20) + " MiB";
    }
    return name;
  }

  static constexpr std::int64_t usual_workspace = 64 << 20;

 private:
  static cublasOperation_t operation(const GemmCall::Matrix& matrix) {
    return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  }

  void multiply() {
    const GemmCall& call = gemm_.call;
    const auto scale = static_cast<float>(call.scale);
    const float zero = 0;
    const int m = as_int(call.m), n = as_int(call.n), k = as_int(call.k);
    const auto* const a = reinterpret_cast<const void*>(gemm_.first);
    const auto* const b = reinterpret_cast<const void*>(gemm_.second);
    auto* const c = reinterpret_cast<void*>(gemm_.result);
    const int lda = as_int(call.first.leading), ldb = as_int(call.second.leading);
    const int ldc = as_int(call.result.leading);
    if (call.batch == 1) {
      api_.check(api_.cublasGemmEx(handle_.get(), operation(call.first), operation(call.second), m,
                                   n, k, &scale, a, gemm_.type, lda, b, gemm_.type, ldb, &zero, c,
                                   gemm_.result_type, ldc, gemm_.compute, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
      return;
    }
    api_.check(
        api_.cublasGemmStridedBatchedEx(
            handle_.get(), operation(call.first), operation(call.second), m, n, k, &scale, a,
            gemm_.type, lda, call.first.batch_stride, b, gemm_.type, ldb, call.second.batch_stride,
            &zero, c, gemm_.result_type, ldc, call.result.batch_stride, as_int(call.batch),
            gemm_.compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
  }

  void multiply_vector(const GemvCall& call) {
    const auto scale = static_cast<float>(call.scale);
    const float zero = 0;
    const bool first = call.matrix == gemm_.call.first.tensor;
    const auto pointer = [](CUdeviceptr at) { return reinterpret_cast<float*>(at); };
    api_.check(
        api_.cublasSgemv_v2(handle_.get(), call.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            as_int(call.rows), as_int(call.columns), &scale,
                            pointer(first ? gemm_.first : gemm_.second), as_int(call.leading),
                            pointer(first ? gemm_.second : gemm_.first), as_int(call.vector_step),
                            &zero, pointer(gemm_.result), as_int(call.result_step)),
        "cublasSgemv");
  }

  const CublasApi& api_;
  BoundGemm gemm_;
  std::optional<GemvCall> vector_;
  DeviceBuffer workspace_;
  std::unique_ptr<cublasContext, decltype(CublasApi::cublasDestroy_v2)> handle_{nullptr, nullptr};
  CUstream stream_ = nullptr;
  bool stream_known_ = false;
};

/// Workspaces with which the plain call may choose differently. PyTorch gives 32 MiB on Hopper.
constexpr std::int64_t plain_workspaces[] = {PlainCall::usual_workspace, 32 << 20};

cudaDataType_t cuda_type(DType type) {
  switch (type) {
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f8e4m3:
      return CUDA_R_8F_E4M3;
    default:
      return CUDA_R_32F;
  }
}

BoundGemm bound(const MatrixProduct& product, const LibraryRequest& request) {
  BoundGemm gemm{.call = gemm_call(product),
                 .type = cuda_type(product.type),
                 .result_type = cuda_type(product.result_type)};
  gemm.first = request.at(gemm.call.first.tensor);
  gemm.second = request.at(gemm.call.second.tensor);
  gemm.result = request.at(gemm.call.result.tensor);
  if (!gemm.call.first_scale.empty()) {
    gemm.first_scale = request.at(gemm.call.first_scale);
    gemm.second_scale = request.at(gemm.call.second_scale);
  }
  if (request.id == "cublas_tf32") gemm.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  return gemm;
}

std::string version_text(const CublasApi& api) {
  std::string text;
  for (libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    api.check(api.cublasGetProperty(part, &value), "cublasGetProperty");
    text += (text.empty() ? "" : ".") + std::to_string(value);
  }
  return text;
}

/// Choices that were made among other offers are not remembered.
std::string offers_text(const CublasApi& api) {
  return version_text(api) + ", by rows and columns, workspaces of 0, 32 and 64 MiB";
}

}  // namespace

Result<const CublasApi*> load_cublas() {
  static const Result<CublasApi> api = resolve_cublas();
  if (!api) return api.error();
  return &api.value();
}

MadeReference make_library_reference(const MatrixProduct& product, const LibraryRequest& request) {
  Result<const CublasApi*> loaded = load_cublas();
  if (!loaded) return loaded.error();
  const CublasApi& api = **loaded;
  const BoundGemm gemm = bound(product, request);
  const auto plain = [&](std::int64_t workspace) -> MadeReference {
    return std::unique_ptr<Runnable>(std::make_unique<PlainCall>(api, gemm, workspace));
  };
  // In FP32 there is one call that everybody makes. In FP16 the library knows more than it tries.
  if (gemm.type == CUDA_R_32F) return plain(PlainCall::usual_workspace);

  const LtSearch lt(api, gemm);
  EngineSearch search;
  search.offers = [&]() -> Result<std::vector<boost::json::object>> {
    std::vector<boost::json::object> offers;
    // The plain call has no types of 8 bits.
    for (std::int64_t workspace : plain_workspaces) {
      if (product.type == DType::f8e4m3) break;
      offers.push_back({{"call", gemm_ex_call}, {"workspace", workspace}});
    }
    for (boost::json::object& offer : lt.offers()) offers.push_back(std::move(offer));
    return offers;
  };
  search.make = [&](const boost::json::object& choice) -> MadeReference {
    const boost::json::value* call = choice.if_contains("call");
    if (!call || *call != gemm_ex_call) return lt.make(choice);
    const boost::json::value* asked = choice.if_contains("workspace");
    for (std::int64_t workspace : plain_workspaces) {
      if (asked && *asked == workspace) return plain(workspace);
    }
    return Error{"unknown workspace"};
  };
  return make_fastest(
      engine_key(request.id, request.problem, request.device.properties().name, offers_text(api)),
      search, request.device);
}

Result<std::string> cublas_version() {
  Result<const CublasApi*> api = load_cublas();
  if (!api) return api.error();
  return version_text(**api);
}

}  // namespace rekernel

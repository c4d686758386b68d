#include <cublasLt.h>
#include <cublas_v2.h>

#include <stdexcept>
#include <type_traits>

#include "harness/base/json.h"
#include "harness/gpu/library.h"
#include "reference/engine_choice.h"
#include "reference/library_references.h"

namespace rekernel {

namespace {

/// What PyTorch gives cuBLAS on Hopper; more has not been seen to help at these sizes.
constexpr std::int64_t workspace_bytes = 64 << 20;
constexpr int heuristic_algorithms = 16;

/// cuBLAS and cuBLASLt at run time. Members carry the names that the headers' macros expand to.
struct CublasApi {
// clang-format off
#define REKERNEL_CUBLAS_FUNCTIONS(X) \
  X(cublasCreate_v2) X(cublasDestroy_v2) X(cublasSetStream_v2) X(cublasSetWorkspace_v2) \
  X(cublasGetProperty) X(cublasGetStatusString)
#define REKERNEL_CUBLASLT_FUNCTIONS(X) \
  X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtMatmul) X(cublasLtMatmulDescCreate) \
  X(cublasLtMatmulDescDestroy) X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy) \
  X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) \
  X(cublasLtMatmulPreferenceSetAttribute) X(cublasLtMatmulAlgoGetHeuristic) \
  X(cublasLtMatmulAlgoCheck) X(cublasLtMatmulAlgoConfigGetAttribute)
// clang-format on
#define REKERNEL_DECLARE(name) decltype(&::name) name = nullptr;
  REKERNEL_CUBLAS_FUNCTIONS(REKERNEL_DECLARE)
  REKERNEL_CUBLASLT_FUNCTIONS(REKERNEL_DECLARE)
#undef REKERNEL_DECLARE
  // The header overloads this one, so that decltype cannot name it.
  cublasStatus_t (*cublasGemmEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,
                                 int k, const void* alpha, const void* a, cudaDataType a_type,
                                 int lda, const void* b, cudaDataType b_type, int ldb,
                                 const void* beta, void* c, cudaDataType c_type, int ldc,
                                 cublasComputeType_t, cublasGemmAlgo_t) = nullptr;

  void check(cublasStatus_t status, const char* what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw std::runtime_error(std::string(what) + ": " + cublasGetStatusString(status));
  }
};

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
#undef REKERNEL_LOAD
#define REKERNEL_LOAD(name) \
  if (!lt->load(#name, api.name) && missing.empty()) missing = lt->path() + ": no " #name;
  REKERNEL_CUBLASLT_FUNCTIONS(REKERNEL_LOAD)
#undef REKERNEL_LOAD
  if (!missing.empty()) return Error{missing};
  return api;
}

Result<const CublasApi*> load_cublas() {
  static const Result<CublasApi> api = resolve_cublas();
  if (!api) return api.error();
  return &api.value();
}

/// A row-major product C = A·B. cuBLAS thinks in columns, and Cᵀ = Bᵀ·Aᵀ has the same bytes: every
/// call below hands it (n, m, k) and B before A.
struct Product {
  std::int64_t m, n, k;
  CUdeviceptr a, b, c;
  cudaDataType_t type;
  cublasComputeType_t compute;
};

class GemmEx : public Runnable {
 public:
  GemmEx(const CublasApi& api, const Product& product)
      : api_(api), product_(product), workspace_(workspace_bytes) {
    cublasHandle_t handle = nullptr;
    api_.check(api_.cublasCreate_v2(&handle), "cublasCreate");
    handle_ = {handle, api_.cublasDestroy_v2};
  }

  void enqueue(CUstream stream) override {
    if (!stream_known_ || stream != stream_) {
      // Setting the stream takes the workspace away, so both are set.
      api_.check(api_.cublasSetStream_v2(handle_.get(), stream), "cublasSetStream");
      api_.check(api_.cublasSetWorkspace_v2(
                     handle_.get(), reinterpret_cast<void*>(workspace_.get()), workspace_bytes),
                 "cublasSetWorkspace");
      stream_ = stream;
      stream_known_ = true;
    }
    const float one = 1;
    const float zero = 0;
    const int n = static_cast<int>(product_.n);
    const int m = static_cast<int>(product_.m);
    const int k = static_cast<int>(product_.k);
    api_.check(api_.cublasGemmEx(handle_.get(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one,
                                 reinterpret_cast<const void*>(product_.b), product_.type, n,
                                 reinterpret_cast<const void*>(product_.a), product_.type, k, &zero,
                                 reinterpret_cast<void*>(product_.c), product_.type, n,
                                 product_.compute, CUBLAS_GEMM_DEFAULT),
               "cublasGemmEx");
  }

  std::string details() const override { return "cublasGemmEx"; }

 private:
  const CublasApi& api_;
  Product product_;
  DeviceBuffer workspace_;
  std::unique_ptr<cublasContext, decltype(CublasApi::cublasDestroy_v2)> handle_{nullptr, nullptr};
  CUstream stream_ = nullptr;
  bool stream_known_ = false;
};

template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, cublasStatus_t (*)(Handle)>;

/// The descriptors of a product for cuBLASLt.
class LtProduct {
 public:
  LtProduct(const CublasApi& api, const Product& product) : api(api), product(product) {
    cublasLtHandle_t raw_handle = nullptr;
    api.check(api.cublasLtCreate(&raw_handle), "cublasLtCreate");
    handle = {raw_handle, api.cublasLtDestroy};
    cublasLtMatmulDesc_t raw_operation = nullptr;
    api.check(api.cublasLtMatmulDescCreate(&raw_operation, product.compute, CUDA_R_32F),
              "cublasLtMatmulDescCreate");
    operation = {raw_operation, api.cublasLtMatmulDescDestroy};
    first = layout(product.n, product.k);
    second = layout(product.k, product.m);
    result = layout(product.n, product.m);
  }

  const CublasApi& api;
  Product product;
  Owned<cublasLtHandle_t> handle{nullptr, nullptr};
  Owned<cublasLtMatmulDesc_t> operation{nullptr, nullptr};
  Owned<cublasLtMatrixLayout_t> first{nullptr, nullptr};
  Owned<cublasLtMatrixLayout_t> second{nullptr, nullptr};
  Owned<cublasLtMatrixLayout_t> result{nullptr, nullptr};

 private:
  Owned<cublasLtMatrixLayout_t> layout(std::int64_t rows, std::int64_t columns) const {
    cublasLtMatrixLayout_t raw = nullptr;
    api.check(api.cublasLtMatrixLayoutCreate(&raw, product.type, rows, columns, rows),
              "cublasLtMatrixLayoutCreate");
    return {raw, api.cublasLtMatrixLayoutDestroy};
  }
};

std::string algorithm_name(const CublasApi& api, const cublasLtMatmulAlgo_t& algorithm) {
  constexpr std::pair<cublasLtMatmulAlgoConfigAttributes_t, const char*> attributes[] = {
      {CUBLASLT_ALGO_CONFIG_ID, "algorithm"},          {CUBLASLT_ALGO_CONFIG_TILE_ID, "tile"},
      {CUBLASLT_ALGO_CONFIG_STAGES_ID, "stages"},      {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, "split_k"},
      {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, "swizzle"},
  };
  std::string name = "cublasLtMatmul";
  for (const auto& [attribute, label] : attributes) {
    std::int32_t value = 0;
    std::size_t written = 0;
    if (api.cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value,
                                                 &written) == CUBLAS_STATUS_SUCCESS) {
      name += std::string(" ") + label + "=" + std::to_string(value);
    }
  }
  // The cluster's shape is a 16-bit attribute, the only one.
  std::uint16_t cluster = 0;
  std::size_t written = 0;
  if (api.cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
                                               &cluster, sizeof cluster,
                                               &written) == CUBLAS_STATUS_SUCCESS) {
    name += " cluster=" + std::to_string(cluster);
  }
  return name;
}

class LtMatmul : public Runnable {
 public:
  LtMatmul(std::shared_ptr<const LtProduct> lt, const cublasLtMatmulAlgo_t& algorithm)
      : lt_(std::move(lt)), algorithm_(algorithm), workspace_(workspace_bytes) {}

  void enqueue(CUstream stream) override {
    const float one = 1;
    const float zero = 0;
    const Product& product = lt_->product;
    void* const c = reinterpret_cast<void*>(product.c);
    lt_->api.check(
        lt_->api.cublasLtMatmul(lt_->handle.get(), lt_->operation.get(), &one,
                                reinterpret_cast<const void*>(product.b), lt_->first.get(),
                                reinterpret_cast<const void*>(product.a), lt_->second.get(), &zero,
                                c, lt_->result.get(), c, lt_->result.get(), &algorithm_,
                                reinterpret_cast<void*>(workspace_.get()), workspace_bytes, stream),
        "cublasLtMatmul");
  }

  std::string details() const override { return algorithm_name(lt_->api, algorithm_); }

 private:
  std::shared_ptr<const LtProduct> lt_;
  cublasLtMatmulAlgo_t algorithm_;
  DeviceBuffer workspace_;
};

constexpr const char* gemm_ex_call = "cublasGemmEx";
constexpr const char* lt_call = "cublasLtMatmul";

/// What PyTorch calls, then cuBLASLt's favourites.
Result<std::vector<boost::json::object>> product_offers(const LtProduct& lt) {
  std::vector<boost::json::object> offers = {{{"call", gemm_ex_call}}};
  cublasLtMatmulPreference_t raw = nullptr;
  lt.api.check(lt.api.cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
  const Owned<cublasLtMatmulPreference_t> preference(raw, lt.api.cublasLtMatmulPreferenceDestroy);
  const std::size_t bytes = workspace_bytes;
  lt.api.check(lt.api.cublasLtMatmulPreferenceSetAttribute(
                   raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
               "cublasLtMatmulPreferenceSetAttribute");
  cublasLtMatmulHeuristicResult_t results[heuristic_algorithms] = {};
  int count = 0;
  lt.api.check(lt.api.cublasLtMatmulAlgoGetHeuristic(
                   lt.handle.get(), lt.operation.get(), lt.first.get(), lt.second.get(),
                   lt.result.get(), lt.result.get(), raw, heuristic_algorithms, results, &count),
               "cublasLtMatmulAlgoGetHeuristic");
  for (int i = 0; i < count; ++i) {
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    boost::json::array words;
    for (std::uint64_t word : results[i].algo.data) {
      words.push_back(static_cast<std::int64_t>(word));
    }
    offers.push_back({{"call", lt_call}, {"algorithm", std::move(words)}});
  }
  return offers;
}

/// The algorithm of a choice, checked by the library: the choice may come from a file.
Result<cublasLtMatmulAlgo_t> read_algorithm(const LtProduct& lt,
                                            const boost::json::object& choice) {
  const boost::json::value value = choice;
  JsonReader root("algorithm", value);
  cublasLtMatmulAlgo_t algorithm{};
  constexpr std::size_t words = std::size(decltype(algorithm.data){});
  std::vector<JsonReader> data = root.required("algorithm").array(words, words);
  for (std::size_t i = 0; i < data.size(); ++i) {
    algorithm.data[i] = static_cast<std::uint64_t>(data[i].integer(INT64_MIN, INT64_MAX));
  }
  if (auto error = root.error()) return *error;
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = lt.api.cublasLtMatmulAlgoCheck(
      lt.handle.get(), lt.operation.get(), lt.first.get(), lt.second.get(), lt.result.get(),
      lt.result.get(), &algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > workspace_bytes) {
    return Error{std::string("cublasLtMatmulAlgoCheck: ") + lt.api.cublasGetStatusString(status)};
  }
  return algorithm;
}

Product describe_product(const Problem& problem, const Bindings& bindings) {
  const Tensor& a = *problem.find_tensor("a");
  const Tensor& b = *problem.find_tensor("b");
  Product product{.m = a.shape.at(0), .n = b.shape.at(1), .k = a.shape.at(1)};
  product.a = bindings.at("a").pointer;
  product.b = bindings.at("b").pointer;
  product.c = bindings.at("c").pointer;
  product.type = a.dtype == DType::f16 ? CUDA_R_16F : CUDA_R_32F;
  product.compute = CUBLAS_COMPUTE_32F;
  return product;
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

}  // namespace

Result<std::unique_ptr<Runnable>> make_cublas_matmul(const ReferenceInfo& info,
                                                     const Problem& problem,
                                                     const Bindings& bindings,
                                                     const Device& device) {
  Result<const CublasApi*> loaded = load_cublas();
  if (!loaded) return loaded.error();
  const CublasApi& api = **loaded;
  Product product = describe_product(problem, bindings);
  if (info.id == "cublas_tf32") product.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  // In FP32 there is one call that everybody makes. In FP16 the library knows more than it tries.
  if (product.type == CUDA_R_32F) {
    return std::unique_ptr<Runnable>(std::make_unique<GemmEx>(api, product));
  }

  const auto lt = std::make_shared<LtProduct>(api, product);
  EngineSearch search;
  search.offers = [&]() { return product_offers(*lt); };
  search.make = [&](const boost::json::object& choice) -> Result<std::unique_ptr<Runnable>> {
    const boost::json::value* call = choice.if_contains("call");
    if (call && *call == gemm_ex_call) {
      return std::unique_ptr<Runnable>(std::make_unique<GemmEx>(api, product));
    }
    Result<cublasLtMatmulAlgo_t> algorithm = read_algorithm(*lt, choice);
    if (!algorithm) return algorithm.error();
    return std::unique_ptr<Runnable>(std::make_unique<LtMatmul>(lt, *algorithm));
  };
  return make_fastest(engine_key(info.id, problem, device.properties().name, version_text(api)),
                      search, device);
}

Result<std::string> cublas_version() {
  Result<const CublasApi*> api = load_cublas();
  if (!api) return api.error();
  return version_text(**api);
}

}  // namespace rekernel

#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/json.h"
#include "reference/cublas.h"

namespace rekernel {

namespace {

/// PyTorch gives cuBLAS 32 MiB on Hopper; algorithms that divide the sum may want more, and with
/// less the library names others.
constexpr std::size_t workspace_sizes[] = {std::size_t{32} << 20, std::size_t{64} << 20, 0};
constexpr std::size_t largest_workspace = std::size_t{64} << 20;
constexpr int heuristic_algorithms = 32;

constexpr const char* lt_call = "cublasLtMatmul";

template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, cublasStatus_t (*)(Handle)>;

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

}  // namespace

/// The descriptors of a product. Seen by rows, every matrix is its transpose, and the factors
/// change places.
class LtProduct {
 public:
  LtProduct(const CublasApi& api, const BoundGemm& gemm, bool by_rows)
      : api(api), gemm(gemm), by_rows(by_rows) {
    cublasLtHandle_t raw_handle = nullptr;
    api.check(api.cublasLtCreate(&raw_handle), "cublasLtCreate");
    handle = {raw_handle, api.cublasLtDestroy};
    cublasLtMatmulDesc_t raw_operation = nullptr;
    api.check(api.cublasLtMatmulDescCreate(&raw_operation, gemm.compute, CUDA_R_32F),
              "cublasLtMatmulDescCreate");
    operation = {raw_operation, api.cublasLtMatmulDescDestroy};
    const GemmCall& call = gemm.call;
    transpose(by_rows ? CUBLASLT_MATMUL_DESC_TRANSB : CUBLASLT_MATMUL_DESC_TRANSA, call.first);
    transpose(by_rows ? CUBLASLT_MATMUL_DESC_TRANSA : CUBLASLT_MATMUL_DESC_TRANSB, call.second);
    if (gemm.first_scale != 0) set_scales();
    first = layout(call.first, gemm.type, call.m, call.k);
    second = layout(call.second, gemm.type, call.k, call.n);
    result = layout(call.result, gemm.result_type, call.m, call.n);
    if (by_rows) std::swap(first, second);
  }

  /// The library's first and second factor.
  const void* first_data() const {
    return reinterpret_cast<const void*>(by_rows ? gemm.second : gemm.first);
  }
  const void* second_data() const {
    return reinterpret_cast<const void*>(by_rows ? gemm.first : gemm.second);
  }

  const CublasApi& api;
  BoundGemm gemm;
  bool by_rows;
  Owned<cublasLtHandle_t> handle{nullptr, nullptr};
  Owned<cublasLtMatmulDesc_t> operation{nullptr, nullptr};
  Owned<cublasLtMatrixLayout_t> first{nullptr, nullptr};
  Owned<cublasLtMatrixLayout_t> second{nullptr, nullptr};
  Owned<cublasLtMatrixLayout_t> result{nullptr, nullptr};

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t name, const T& value) {
    api.check(api.cublasLtMatmulDescSetAttribute(operation.get(), name, &value, sizeof value),
              "cublasLtMatmulDescSetAttribute");
  }

  void transpose(cublasLtMatmulDescAttributes_t name, const GemmCall::Matrix& matrix) {
    set(name, matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  }

  /// A scale for each row of the first factor and each column of the second.
  void set_scales() {
#if CUBLAS_VERSION >= 120900
    const auto mode = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, by_rows ? gemm.second_scale : gemm.first_scale);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, by_rows ? gemm.first_scale : gemm.second_scale);
#else
    throw std::runtime_error(
        "this program was built with a cuBLAS before 12.9, which has no scales by row");
#endif
  }

  template <class T>
  void set_layout(cublasLtMatrixLayout_t matrix, cublasLtMatrixLayoutAttribute_t name,
                  const T& value) const {
    api.check(api.cublasLtMatrixLayoutSetAttribute(matrix, name, &value, sizeof value),
              "cublasLtMatrixLayoutSetAttribute");
  }

  Owned<cublasLtMatrixLayout_t> layout(const GemmCall::Matrix& matrix, cudaDataType_t type,
                                       std::int64_t rows, std::int64_t columns) const {
    if (matrix.transposed != by_rows) std::swap(rows, columns);
    cublasLtMatrixLayout_t raw = nullptr;
    api.check(api.cublasLtMatrixLayoutCreate(&raw, type, static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(columns), matrix.leading),
              "cublasLtMatrixLayoutCreate");
    Owned<cublasLtMatrixLayout_t> made{raw, api.cublasLtMatrixLayoutDestroy};
    if (by_rows) set_layout(raw, CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_ROW);
    if (gemm.call.batch > 1) {
      set_layout(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                 static_cast<std::int32_t>(gemm.call.batch));
      set_layout(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
    }
    return made;
  }
};

namespace {

class LtMatmul : public Runnable {
 public:
  LtMatmul(std::shared_ptr<const LtProduct> lt, const cublasLtMatmulAlgo_t& algorithm,
           std::size_t workspace_bytes)
      : lt_(std::move(lt)), algorithm_(algorithm), workspace_bytes_(workspace_bytes) {
    if (workspace_bytes > 0) workspace_ = DeviceBuffer(static_cast<std::int64_t>(workspace_bytes));
  }

  void enqueue(CUstream stream) override {
    const auto one = static_cast<float>(lt_->gemm.call.scale);
    const float zero = 0;
    void* const c = reinterpret_cast<void*>(lt_->gemm.result);
    lt_->api.check(lt_->api.cublasLtMatmul(
                       lt_->handle.get(), lt_->operation.get(), &one, lt_->first_data(),
                       lt_->first.get(), lt_->second_data(), lt_->second.get(), &zero, c,
                       lt_->result.get(), c, lt_->result.get(), &algorithm_,
                       reinterpret_cast<void*>(workspace_.get()), workspace_bytes_, stream),
                   "cublasLtMatmul");
  }

  std::string details() const override {
    return algorithm_name(lt_->api, algorithm_) + (lt_->by_rows ? " by rows" : "");
  }

 private:
  std::shared_ptr<const LtProduct> lt_;
  cublasLtMatmulAlgo_t algorithm_;
  std::size_t workspace_bytes_;
  DeviceBuffer workspace_;
};

/// The library's favourites within a workspace, none where it refuses.
std::vector<boost::json::array> favourites(const LtProduct& lt, std::size_t workspace) {
  cublasLtMatmulPreference_t raw = nullptr;
  lt.api.check(lt.api.cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
  const Owned<cublasLtMatmulPreference_t> preference(raw, lt.api.cublasLtMatmulPreferenceDestroy);
  lt.api.check(lt.api.cublasLtMatmulPreferenceSetAttribute(
                   raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
               "cublasLtMatmulPreferenceSetAttribute");
  cublasLtMatmulHeuristicResult_t results[heuristic_algorithms] = {};
  int count = 0;
  if (lt.api.cublasLtMatmulAlgoGetHeuristic(
          lt.handle.get(), lt.operation.get(), lt.first.get(), lt.second.get(), lt.result.get(),
          lt.result.get(), raw, heuristic_algorithms, results, &count) != CUBLAS_STATUS_SUCCESS) {
    return {};
  }
  std::vector<boost::json::array> found;
  for (int i = 0; i < count; ++i) {
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    boost::json::array words;
    for (std::uint64_t word : results[i].algo.data) {
      words.push_back(static_cast<std::int64_t>(word));
    }
    found.push_back(std::move(words));
  }
  return found;
}

/// The algorithm of a choice, and the workspace that it wants.
Result<cublasLtMatmulHeuristicResult_t> read_algorithm(const LtProduct& lt,
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
  if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > largest_workspace) {
    return Error{std::string("cublasLtMatmulAlgoCheck: ") + lt.api.cublasGetStatusString(status)};
  }
  result.algo = algorithm;
  return result;
}

}  // namespace

LtSearch::LtSearch(const CublasApi& api, const BoundGemm& gemm) {
  for (const bool by_rows : {false, true}) {
    views_.push_back(std::make_shared<const LtProduct>(api, gemm, by_rows));
  }
}

LtSearch::~LtSearch() = default;

std::vector<boost::json::object> LtSearch::offers() const {
  std::vector<boost::json::object> all;
  for (const auto& view : views_) {
    for (const std::size_t workspace : workspace_sizes) {
      for (boost::json::array& words : favourites(*view, workspace)) {
        boost::json::object offer = {
            {"call", lt_call}, {"by_rows", view->by_rows}, {"algorithm", std::move(words)}};
        if (std::find(all.begin(), all.end(), offer) == all.end()) all.push_back(std::move(offer));
      }
    }
  }
  return all;
}

MadeReference LtSearch::make(const boost::json::object& choice) const {
  const boost::json::value* by_rows = choice.if_contains("by_rows");
  const auto& view = views_[by_rows && *by_rows == true ? 1 : 0];
  const Result<cublasLtMatmulHeuristicResult_t> checked = read_algorithm(*view, choice);
  if (!checked) return checked.error();
  return std::unique_ptr<Runnable>(
      std::make_unique<LtMatmul>(view, checked->algo, checked->workspaceSize));
}

}  // namespace rekernel

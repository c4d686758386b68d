#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <boost/json.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/device/launch.h"
#include "reference/gemm_call.h"
#include "reference/library_references.h"

namespace rekernel {

/// cuBLAS and cuBLASLt at run time. Members carry the names that the headers' macros expand to.
struct CublasApi {
// clang-format off
#define REKERNEL_CUBLAS_FUNCTIONS(X) \
  X(cublasCreate_v2) X(cublasDestroy_v2) X(cublasSetStream_v2) X(cublasSetWorkspace_v2) \
  X(cublasGetProperty) X(cublasGetStatusString) X(cublasSgemv_v2)
#define REKERNEL_CUBLASLT_FUNCTIONS(X) \
  X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtMatmul) X(cublasLtMatmulDescCreate) \
  X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy) X(cublasLtMatrixLayoutSetAttribute) \
  X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) \
  X(cublasLtMatmulPreferenceSetAttribute) X(cublasLtMatmulAlgoGetHeuristic) \
  X(cublasLtMatmulAlgoCheck) X(cublasLtMatmulAlgoConfigGetAttribute)
// clang-format on
#define REKERNEL_DECLARE(name) decltype(&::name) name = nullptr;
  REKERNEL_CUBLAS_FUNCTIONS(REKERNEL_DECLARE)
  REKERNEL_CUBLASLT_FUNCTIONS(REKERNEL_DECLARE)
#undef REKERNEL_DECLARE
  // The header overloads these two, so that decltype cannot name them.
  cublasStatus_t (*cublasGemmEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,
                                 int k, const void* alpha, const void* a, cudaDataType a_type,
                                 int lda, const void* b, cudaDataType b_type, int ldb,
                                 const void* beta, void* c, cudaDataType c_type, int ldc,
                                 cublasComputeType_t, cublasGemmAlgo_t) = nullptr;
  cublasStatus_t (*cublasGemmStridedBatchedEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                               int m, int n, int k, const void* alpha,
                                               const void* a, cudaDataType a_type, int lda,
                                               long long a_stride, const void* b,
                                               cudaDataType b_type, int ldb, long long b_stride,
                                               const void* beta, void* c, cudaDataType c_type,
                                               int ldc, long long c_stride, int batch,
                                               cublasComputeType_t, cublasGemmAlgo_t) = nullptr;

  void check(cublasStatus_t status, const char* what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw std::runtime_error(std::string(what) + ": " + cublasGetStatusString(status));
  }
};

/// Loads both on first use; the error says that one was not found, or what it lacks.
Result<const CublasApi*> load_cublas();

/// A product over bound buffers.
struct BoundGemm {
  GemmCall call;
  CUdeviceptr first = 0, second = 0, result = 0;
  CUdeviceptr first_scale = 0, second_scale = 0;  ///< 0: none
  cudaDataType_t type, result_type;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

class LtProduct;

/// What cuBLASLt offers for a product, as choices to remember, and one of them ready to run.
class LtSearch {
 public:
  LtSearch(const CublasApi& api, const BoundGemm& gemm);
  ~LtSearch();
  LtSearch(const LtSearch&) = delete;
  LtSearch& operator=(const LtSearch&) = delete;

  std::vector<boost::json::object> offers() const;
  /// The choice may come from a file: the library checks it.
  MadeReference make(const boost::json::object& choice) const;

 private:
  /// The same product seen by columns and by rows, for which the library has different favourites.
  std::vector<std::shared_ptr<const LtProduct>> views_;
};

}  // namespace rekernel

#pragma once

#include <cudnn.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/device/launch.h"
#include "harness/gpu/cuda.h"
#include "ops/dtype.h"
#include "ops/result.h"

namespace rekernel {

/// cuDNN's functions that the references call, loaded at run time. Members carry the API's own
/// names.
struct CudnnApi {
// clang-format off
#define REKERNEL_CUDNN_FUNCTIONS(X) \
  X(cudnnGetVersion) X(cudnnGetErrorString) X(cudnnGetLastErrorString) X(cudnnCreate) \
  X(cudnnDestroy) X(cudnnSetStream) X(cudnnBackendCreateDescriptor) \
  X(cudnnBackendDestroyDescriptor) X(cudnnBackendSetAttribute) X(cudnnBackendGetAttribute) \
  X(cudnnBackendFinalize) X(cudnnBackendExecute) X(cudnnCreateTensorDescriptor) \
  X(cudnnDestroyTensorDescriptor) X(cudnnSetTensorNdDescriptor) X(cudnnAddTensor) \
  X(cudnnSoftmaxForward) X(cudnnCreatePoolingDescriptor) X(cudnnDestroyPoolingDescriptor) \
  X(cudnnSetPoolingNdDescriptor) X(cudnnPoolingForward) X(cudnnCreateActivationDescriptor) \
  X(cudnnDestroyActivationDescriptor) X(cudnnSetActivationDescriptor) \
  X(cudnnActivationForward) X(cudnnSoftmaxBackward) X(cudnnBatchNormalizationForwardTraining) \
  X(cudnnCreateReduceTensorDescriptor) X(cudnnDestroyReduceTensorDescriptor) \
  X(cudnnSetReduceTensorDescriptor) X(cudnnGetReductionWorkspaceSize) X(cudnnReduceTensor)
// clang-format on
#define REKERNEL_DECLARE(name) decltype(&::name) name = nullptr;
  REKERNEL_CUDNN_FUNCTIONS(REKERNEL_DECLARE)
#undef REKERNEL_DECLARE

  /// "9.19.0"
  std::string version() const;
  /// What the library says of a failed call, one line.
  std::string describe(cudnnStatus_t status) const;
};

/// Loads cuDNN on first use; the error says that it was not found, or what it lacks.
Result<const CudnnApi*> load_cudnn();

struct BuiltPlan;

/// A cuDNN handle on a device's context, which must be current. Shared by the plans that run on it.
class Cudnn {
 public:
  /// The device's handle, which it keeps.
  static Result<std::shared_ptr<const Cudnn>> open(const Device& device);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  const CudnnApi& api() const { return api_; }
  cudnnHandle_t handle() const { return handle_; }
  void set_stream(CUstream stream) const;
  /// Throws std::runtime_error with the library's message.
  void check(cudnnStatus_t status, const char* what) const;
  /// Plans that were made on this handle and may be run again, on other buffers.
  std::map<std::string, std::shared_ptr<const BuiltPlan>>& plans() const { return plans_; }

 private:
  Cudnn(const CudnnApi& api, cudnnHandle_t handle) : api_(api), handle_(handle) {}

  const CudnnApi& api_;
  cudnnHandle_t handle_ = nullptr;
  mutable std::map<std::string, std::shared_ptr<const BuiltPlan>> plans_;
};

/// Sizes as the classic interface takes them; throws std::runtime_error where one is too large.
int as_int(std::int64_t value);
/// Throws std::runtime_error for a type that cuDNN has no name for here.
cudnnDataType_t cudnn_type(DType type);

/// A descriptor of the classic interface, which its library's function destroys.
template <class T>
std::shared_ptr<std::remove_pointer_t<T>> owned(T descriptor, cudnnStatus_t (*destroy)(T)) {
  return {descriptor, destroy};
}

/// A tensor descriptor of the classic interface: packed, at least four extents.
class CudnnTensor {
 public:
  CudnnTensor(const Cudnn& cudnn, cudnnDataType_t type, const std::vector<std::int64_t>& extents);
  cudnnTensorDescriptor_t get() const { return descriptor_.get(); }

 private:
  std::unique_ptr<std::remove_pointer_t<cudnnTensorDescriptor_t>,
                  decltype(CudnnApi::cudnnDestroyTensorDescriptor)>
      descriptor_;
};

/// One classic call of the library.
class CudnnCall : public Runnable {
 public:
  using Function = std::function<void(CUstream)>;
  CudnnCall(std::string details, Function call)
      : details_(std::move(details)), call_(std::move(call)) {}
  void enqueue(CUstream stream) override { call_(stream); }
  std::string details() const override { return details_; }

 private:
  std::string details_;
  Function call_;
};

/// Keeps a buffer alive as long as what runs on it.
class WithMemory : public Runnable {
 public:
  WithMemory(std::unique_ptr<Runnable> runnable, std::shared_ptr<DeviceBuffer> memory)
      : memory_(std::move(memory)), runnable_(std::move(runnable)) {}
  void enqueue(CUstream stream) override { runnable_->enqueue(stream); }
  std::string details() const override { return runnable_->details(); }

 private:
  std::shared_ptr<DeviceBuffer> memory_;
  std::unique_ptr<Runnable> runnable_;
};

/// Runs its steps one after the other; the details are a name and theirs.
class Sequence : public Runnable {
 public:
  Sequence(std::vector<std::unique_ptr<Runnable>> steps, std::string name)
      : steps_(std::move(steps)), name_(std::move(name)) {}
  void enqueue(CUstream stream) override {
    for (const auto& step : steps_) step->enqueue(stream);
  }
  std::string details() const override;

 private:
  std::vector<std::unique_ptr<Runnable>> steps_;
  std::string name_;
};

}  // namespace rekernel

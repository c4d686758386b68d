#include <algorithm>

#include "reference/cudnn.h"
#include "reference/engine_choice.h"
#include "reference/library_references.h"

namespace rekernel {

namespace {

/// What a classic call runs on, and with.
struct Classic {
  std::shared_ptr<const Cudnn> cudnn;
  const void* x = nullptr;
  void* y = nullptr;
};

Result<Classic> open_classic(const std::string& x, const std::string& y,
                             const LibraryRequest& request) {
  Result<std::shared_ptr<const Cudnn>> cudnn = Cudnn::open(request.device);
  if (!cudnn) return cudnn.error();
  return Classic{*cudnn, reinterpret_cast<const void*>(request.at(x)),
                 reinterpret_cast<void*>(request.at(y))};
}

cudnnActivationMode_t mode_of(Activation::Kind kind) {
  switch (kind) {
    case Activation::Kind::relu:
      return CUDNN_ACTIVATION_RELU;
    case Activation::Kind::sigmoid:
      return CUDNN_ACTIVATION_SIGMOID;
    case Activation::Kind::tanh:
      return CUDNN_ACTIVATION_TANH;
    case Activation::Kind::elu:
      return CUDNN_ACTIVATION_ELU;
    case Activation::Kind::swish:
      break;
  }
  return CUDNN_ACTIVATION_SWISH;
}

cudnnReduceTensorOp_t operation_of(Reduction::Kind kind) {
  return kind == Reduction::Kind::sum   ? CUDNN_REDUCE_TENSOR_ADD
         : kind == Reduction::Kind::max ? CUDNN_REDUCE_TENSOR_MAX
                                        : CUDNN_REDUCE_TENSOR_MIN;
}

/// Elements as a matrix: no extent may exceed what an int holds.
Extents matrix_of(std::int64_t elements) {
  constexpr std::int64_t most_rows = 4096;
  std::int64_t rows = 1;
  while (elements % 2 == 0 && rows < most_rows) {
    rows *= 2;
    elements /= 2;
  }
  return {rows, elements, 1, 1};
}

}  // namespace

MadeReference make_library_reference(const Activation& activation, const LibraryRequest& request) {
  const Result<Classic> opened = open_classic(activation.x, activation.y, request);
  if (!opened) return opened.error();
  const Classic& call = *opened;
  const CudnnApi& api = call.cudnn->api();
  cudnnActivationDescriptor_t raw = nullptr;
  call.cudnn->check(api.cudnnCreateActivationDescriptor(&raw), "cudnnCreateActivationDescriptor");
  const auto descriptor = owned(raw, api.cudnnDestroyActivationDescriptor);
  // The coefficient is ELU's alpha, and of a clipped ReLU, which is not asked for, the ceiling.
  call.cudnn->check(api.cudnnSetActivationDescriptor(raw, mode_of(activation.kind),
                                                     CUDNN_PROPAGATE_NAN, activation.alpha),
                    "cudnnSetActivationDescriptor");
  const auto shape =
      std::make_shared<CudnnTensor>(*call.cudnn, CUDNN_DATA_FLOAT, matrix_of(activation.elements));
  return std::unique_ptr<Runnable>(
      std::make_unique<CudnnCall>("cudnnActivationForward", [=](CUstream stream) {
        const float one = 1;
        const float zero = 0;
        call.cudnn->set_stream(stream);
        call.cudnn->check(call.cudnn->api().cudnnActivationForward(
                              call.cudnn->handle(), descriptor.get(), &one, shape->get(), call.x,
                              &zero, shape->get(), call.y),
                          "cudnnActivationForward");
      }));
}

MadeReference make_library_reference(const Reduction& reduction, const LibraryRequest& request) {
  const Result<Classic> opened = open_classic(reduction.x, reduction.y, request);
  if (!opened) return opened.error();
  const Classic& call = *opened;
  const CudnnApi& api = call.cudnn->api();
  cudnnReduceTensorDescriptor_t raw = nullptr;
  call.cudnn->check(api.cudnnCreateReduceTensorDescriptor(&raw),
                    "cudnnCreateReduceTensorDescriptor");
  const auto descriptor = owned(raw, api.cudnnDestroyReduceTensorDescriptor);
  call.cudnn->check(api.cudnnSetReduceTensorDescriptor(
                        raw, operation_of(reduction.kind), CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
                        CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES),
                    "cudnnSetReduceTensorDescriptor");
  const auto from =
      std::make_shared<CudnnTensor>(*call.cudnn, CUDNN_DATA_FLOAT,
                                    Extents{reduction.outer, reduction.length, reduction.inner, 1});
  const auto to = std::make_shared<CudnnTensor>(*call.cudnn, CUDNN_DATA_FLOAT,
                                                Extents{reduction.outer, 1, reduction.inner, 1});
  std::size_t bytes = 0;
  call.cudnn->check(
      api.cudnnGetReductionWorkspaceSize(call.cudnn->handle(), raw, from->get(), to->get(), &bytes),
      "cudnnGetReductionWorkspaceSize");
  const auto workspace =
      std::make_shared<DeviceBuffer>(std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes)));
  const auto scale = static_cast<float>(reduction.scale);
  auto runnable = std::make_unique<CudnnCall>("cudnnReduceTensor", [=](CUstream stream) {
    const float zero = 0;
    call.cudnn->set_stream(stream);
    call.cudnn->check(
        call.cudnn->api().cudnnReduceTensor(call.cudnn->handle(), descriptor.get(), nullptr, 0,
                                            reinterpret_cast<void*>(workspace->get()),
                                            static_cast<std::size_t>(workspace->bytes()), &scale,
                                            from->get(), call.x, &zero, to->get(), call.y),
        "cudnnReduceTensor");
  });
  return std::unique_ptr<Runnable>(std::move(runnable));
}

}  // namespace rekernel

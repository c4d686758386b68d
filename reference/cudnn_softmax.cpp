#include "reference/cudnn.h"
#include "reference/engine_choice.h"
#include "reference/library_references.h"

namespace rekernel {

namespace {

/// A way to tell cuDNN to normalise rows of a packed matrix: which softmax mode, and which extent
/// of the four-extent tensor the columns are.
struct SoftmaxForm {
  const char* name;
  cudnnSoftmaxMode_t mode;
  bool columns_are_channels;
};

constexpr SoftmaxForm softmax_forms[] = {
    {"instance mode, columns as channels", CUDNN_SOFTMAX_MODE_INSTANCE, true},
    {"channel mode, columns as channels", CUDNN_SOFTMAX_MODE_CHANNEL, true},
    {"instance mode, columns as width", CUDNN_SOFTMAX_MODE_INSTANCE, false},
};

/// The buffers of a call; of the backward pass, `y` is read and `dx` written.
struct SoftmaxBuffers {
  CUdeviceptr x, y, dx;
};

std::unique_ptr<Runnable> softmax_call(const std::shared_ptr<const Cudnn>& cudnn,
                                       const SoftmaxForm& form, const Softmax& softmax,
                                       const SoftmaxBuffers& buffers) {
  const auto shape = std::make_shared<CudnnTensor>(
      *cudnn, cudnn_type(softmax.type),
      form.columns_are_channels ? Extents{softmax.rows, softmax.columns, 1, 1}
                                : Extents{softmax.rows, 1, 1, softmax.columns});
  const auto algorithm =
      softmax.kind == Softmax::Kind::logarithm ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
  const bool backward = softmax.kind == Softmax::Kind::backward;
  return std::make_unique<CudnnCall>(form.name, [=, mode = form.mode](CUstream stream) {
    const float one = 1;
    const float zero = 0;
    const auto* const x = reinterpret_cast<const void*>(buffers.x);
    auto* const y = reinterpret_cast<void*>(buffers.y);
    cudnn->set_stream(stream);
    if (backward) {
      cudnn->check(cudnn->api().cudnnSoftmaxBackward(
                       cudnn->handle(), algorithm, mode, &one, shape->get(), y, shape->get(), x,
                       &zero, shape->get(), reinterpret_cast<void*>(buffers.dx)),
                   "cudnnSoftmaxBackward");
    } else {
      cudnn->check(cudnn->api().cudnnSoftmaxForward(cudnn->handle(), algorithm, mode, &one,
                                                    shape->get(), x, &zero, shape->get(), y),
                   "cudnnSoftmaxForward");
    }
  });
}

}  // namespace

MadeReference make_library_reference(const Softmax& softmax, const LibraryRequest& request) {
  Result<std::shared_ptr<const Cudnn>> cudnn = Cudnn::open(request.device);
  if (!cudnn) return cudnn.error();
  const SoftmaxBuffers buffers{.x = request.at(softmax.x),
                               .y = request.at(softmax.y),
                               .dx = softmax.dx.empty() ? 0 : request.at(softmax.dx)};

  EngineSearch search;
  search.offers = []() -> Result<std::vector<boost::json::object>> {
    std::vector<boost::json::object> offers;
    for (const SoftmaxForm& form : softmax_forms) offers.push_back({{"form", form.name}});
    return offers;
  };
  search.make = [&](const boost::json::object& choice) -> MadeReference {
    const boost::json::value* name = choice.if_contains("form");
    for (const SoftmaxForm& form : softmax_forms) {
      if (name && *name == form.name) return softmax_call(*cudnn, form, softmax, buffers);
    }
    return Error{"unknown form of softmax"};
  };
  return make_fastest(engine_key(request.id, request.problem, request.device.properties().name,
                                 (*cudnn)->api().version()),
                      search, request.device);
}

}  // namespace rekernel

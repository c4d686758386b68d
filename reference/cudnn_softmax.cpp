#include <stdexcept>

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

std::unique_ptr<Runnable> make_softmax(const std::shared_ptr<const Cudnn>& cudnn,
                                       const SoftmaxForm& form, std::int64_t rows,
                                       std::int64_t columns, CUdeviceptr x, CUdeviceptr y) {
  using Extents = std::vector<std::int64_t>;
  const auto shape = std::make_shared<CudnnTensor>(
      *cudnn, CUDNN_DATA_FLOAT,
      form.columns_are_channels ? Extents{rows, columns, 1, 1} : Extents{rows, 1, 1, columns});
  return std::make_unique<CudnnCall>(
      form.name, [cudnn, shape, mode = form.mode, x, y](CUstream stream) {
        const float one = 1;
        const float zero = 0;
        cudnn->set_stream(stream);
        cudnn->check(
            cudnn->api().cudnnSoftmaxForward(cudnn->handle(), CUDNN_SOFTMAX_ACCURATE, mode, &one,
                                             shape->get(), reinterpret_cast<const void*>(x), &zero,
                                             shape->get(), reinterpret_cast<void*>(y)),
            "cudnnSoftmaxForward");
      });
}

}  // namespace

Result<std::unique_ptr<Runnable>> make_cudnn_softmax(const ReferenceInfo& info,
                                                     const Problem& problem,
                                                     const Bindings& bindings,
                                                     const Device& device) {
  Result<std::shared_ptr<const Cudnn>> cudnn = Cudnn::open();
  if (!cudnn) return cudnn.error();
  const std::int64_t rows = problem.attribute("rows");
  const std::int64_t columns = problem.attribute("columns");

  EngineSearch search;
  search.offers = []() -> Result<std::vector<boost::json::object>> {
    std::vector<boost::json::object> offers;
    for (const SoftmaxForm& form : softmax_forms) offers.push_back({{"form", form.name}});
    return offers;
  };
  search.make = [&](const boost::json::object& choice) -> Result<std::unique_ptr<Runnable>> {
    const boost::json::value* name = choice.if_contains("form");
    for (const SoftmaxForm& form : softmax_forms) {
      if (!name || *name != form.name) continue;
      return make_softmax(*cudnn, form, rows, columns, bindings.at("x").pointer,
                          bindings.at("y").pointer);
    }
    return Error{"unknown form of softmax"};
  };
  return make_fastest(
      engine_key(info.id, problem, device.properties().name, (*cudnn)->api().version()), search,
      device);
}

}  // namespace rekernel

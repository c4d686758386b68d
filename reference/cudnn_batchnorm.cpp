#include <algorithm>
#include <vector>

#include "reference/cudnn.h"
#include "reference/engine_choice.h"
#include "reference/library_references.h"

namespace rekernel {

namespace {

struct BatchNormForm {
  const char* name;
  cudnnBatchNormMode_t mode;
};

constexpr BatchNormForm batch_norm_forms[] = {
    {"persistent", CUDNN_BATCHNORM_SPATIAL_PERSISTENT},
    {"spatial", CUDNN_BATCHNORM_SPATIAL},
};

/// Weights of 1 and biases of 0 for channels that have none.
std::shared_ptr<DeviceBuffer> neutral_parameters(std::int64_t channels) {
  std::vector<float> values(static_cast<std::size_t>(2 * channels), 0.0F);
  std::fill_n(values.begin(), channels, 1.0F);
  const std::size_t bytes = values.size() * sizeof(float);
  auto memory = std::make_shared<DeviceBuffer>(static_cast<std::int64_t>(bytes));
  REKERNEL_CUDA(cuMemcpyHtoD(memory->get(), values.data(), bytes));
  return memory;
}

}  // namespace

MadeReference make_library_reference(const BatchNorm& norm, const LibraryRequest& request) {
  Result<std::shared_ptr<const Cudnn>> opened = Cudnn::open(request.device);
  if (!opened) return opened.error();
  const std::shared_ptr<const Cudnn> cudnn = *opened;
  const std::int64_t images = norm.of_instances ? 1 : norm.batch;
  const std::int64_t channels = norm.of_instances ? norm.batch * norm.channels : norm.channels;
  const bool neutral = norm.weight.empty();
  const std::shared_ptr<DeviceBuffer> own = neutral ? neutral_parameters(channels) : nullptr;
  const auto* const weight =
      reinterpret_cast<const void*>(neutral ? own->get() : request.at(norm.weight));
  const auto* const bias = reinterpret_cast<const void*>(
      neutral ? own->get() + static_cast<CUdeviceptr>(channels) * sizeof(float)
              : request.at(norm.bias));
  const auto* const x = reinterpret_cast<const void*>(request.at(norm.x));
  auto* const y = reinterpret_cast<void*>(request.at(norm.y));
  const auto shape = std::make_shared<CudnnTensor>(*cudnn, CUDNN_DATA_FLOAT,
                                                   Extents{images, channels, norm.inner, 1});
  const auto per_channel =
      std::make_shared<CudnnTensor>(*cudnn, CUDNN_DATA_FLOAT, Extents{1, channels, 1, 1});

  EngineSearch search;
  search.offers = []() -> Result<std::vector<boost::json::object>> {
    std::vector<boost::json::object> offers;
    for (const BatchNormForm& form : batch_norm_forms) offers.push_back({{"form", form.name}});
    return offers;
  };
  search.make = [&](const boost::json::object& choice) -> MadeReference {
    const boost::json::value* name = choice.if_contains("form");
    for (const BatchNormForm& form : batch_norm_forms) {
      if (!name || *name != form.name) continue;
      auto call = std::make_unique<CudnnCall>(
          std::string("cudnnBatchNormalizationForwardTraining, ") + form.name,
          [=, mode = form.mode, eps = norm.eps](CUstream stream) {
            const float one = 1;
            const float zero = 0;
            cudnn->set_stream(stream);
            cudnn->check(
                cudnn->api().cudnnBatchNormalizationForwardTraining(
                    cudnn->handle(), mode, &one, &zero, shape->get(), x, shape->get(), y,
                    per_channel->get(), weight, bias, 1.0, nullptr, nullptr, eps, nullptr, nullptr),
                "cudnnBatchNormalizationForwardTraining");
          });
      return std::unique_ptr<Runnable>(std::make_unique<WithMemory>(std::move(call), own));
    }
    return Error{"unknown form of batch norm"};
  };
  return make_fastest(engine_key(request.id, request.problem, request.device.properties().name,
                                 cudnn->api().version()),
                      search, request.device);
}

}  // namespace rekernel

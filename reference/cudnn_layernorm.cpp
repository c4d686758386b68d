#include <algorithm>

#include "reference/cudnn_graph.h"
#include "reference/engine_choice.h"
#include "reference/library_references.h"

namespace rekernel {

namespace {

/// How a row of features is laid out for cuDNN's LayerNorm: all in one extent, or spread over the
/// extents of the tensor that the row once was.
struct LayerNormForm {
  const char* name;
  cudnnBackendNormFwdPhase_t phase;
  bool features_as_channels;
};

constexpr LayerNormForm layernorm_forms[] = {
    {"inference, features as channels", CUDNN_NORM_FWD_INFERENCE, true},
    {"inference, features as width", CUDNN_NORM_FWD_INFERENCE, false},
    {"training, features as channels", CUDNN_NORM_FWD_TRAINING, true},
    {"training, features as width", CUDNN_NORM_FWD_TRAINING, false},
};

struct BoundLayerNorm {
  std::int64_t batch, features;
  float eps;
  CUdeviceptr x, weight, bias, y;
};

/// `statistics` holds two floats a row; the training phase writes them.
CudnnGraph layer_norm_graph(const std::shared_ptr<const Cudnn>& cudnn, const LayerNormForm& form,
                            const BoundLayerNorm& norm, CUdeviceptr statistics) {
  CudnnGraph graph({.api = &cudnn->api(), .cudnn = cudnn});
  constexpr cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
  const Extents rows = form.features_as_channels ? Extents{norm.batch, norm.features, 1, 1}
                                                 : Extents{norm.batch, 1, 1, norm.features};
  Extents one_row = rows;
  one_row[0] = 1;
  const Extents per_row = {norm.batch, 1, 1, 1};
  const auto x = graph.buffer(f32, rows, norm.x);
  const auto weight = graph.buffer(f32, one_row, norm.weight);
  const auto bias = graph.buffer(f32, one_row, norm.bias);
  const auto eps = graph.scalar(norm.eps, 4);
  const auto y = graph.buffer(f32, rows, norm.y);
  CudnnGraph::Tensor mean = 0;
  CudnnGraph::Tensor inverse_deviation = 0;
  if (form.phase == CUDNN_NORM_FWD_TRAINING) {
    mean = graph.buffer(f32, per_row, statistics);
    inverse_deviation = graph.buffer(
        f32, per_row, statistics + sizeof(float) * static_cast<CUdeviceptr>(norm.batch));
  }
  graph.layer_norm(form.phase, x, weight, bias, eps, y, mean, inverse_deviation);
  graph.seal();
  return graph;
}

}  // namespace

MadeReference make_library_reference(const LayerNorm& shape, const LibraryRequest& request) {
  Result<std::shared_ptr<const Cudnn>> cudnn = Cudnn::open(request.device);
  if (!cudnn) return cudnn.error();
  const BoundLayerNorm norm{.batch = shape.rows,
                            .features = shape.columns,
                            .eps = static_cast<float>(shape.eps),
                            .x = request.at(shape.x),
                            .weight = request.at(shape.weight),
                            .bias = request.at(shape.bias),
                            .y = request.at(shape.y)};
  const auto statistics = std::make_shared<DeviceBuffer>(2 * sizeof(float) * norm.batch);

  const std::string key = engine_key(request.id, request.problem, request.device.properties().name,
                                     (*cudnn)->api().version());

  EngineSearch search;
  search.offers = [&]() -> Result<std::vector<boost::json::object>> {
    std::vector<boost::json::object> all;
    std::string refusal;
    for (const LayerNormForm& form : layernorm_forms) {
      Result<std::vector<boost::json::object>> offers =
          guarded([&]() -> Result<std::vector<boost::json::object>> {
            return engine_offers(layer_norm_graph(*cudnn, form, norm, statistics->get()), Math::any,
                                 form.name);
          });
      if (!offers) {
        refusal = offers.error().message;
        continue;
      }
      all.insert(all.end(), offers->begin(), offers->end());
    }
    if (all.empty()) return Error{refusal};
    return all;
  };
  search.make = [&](const boost::json::object& choice) -> Result<std::unique_ptr<Runnable>> {
    Result<EngineConfiguration> engine = EngineConfiguration::from_json(choice);
    if (!engine) return engine.error();
    const boost::json::value* variant = choice.if_contains("variant");
    for (const LayerNormForm& form : layernorm_forms) {
      if (!variant || *variant != form.name) continue;
      return guarded([&]() -> Result<std::unique_ptr<Runnable>> {
        Result<std::unique_ptr<Runnable>> plan =
            layer_norm_graph(*cudnn, form, norm, statistics->get())
                .plan(*engine, key + " | " + form.name);
        if (!plan) return plan.error();
        std::vector<std::unique_ptr<Runnable>> steps;
        steps.push_back(std::make_unique<WithMemory>(std::move(*plan), statistics));
        return std::unique_ptr<Runnable>(std::make_unique<Sequence>(std::move(steps), form.name));
      });
    }
    return Error{"unknown form of layer norm"};
  };
  return make_fastest(key, search, request.device);
}

}  // namespace rekernel

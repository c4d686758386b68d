#include "reference/cudnn_graph.h"
#include "reference/cudnn_pooling.h"
#include "reference/engine_choice.h"
#include "reference/library_references.h"

namespace rekernel {

namespace {

/// Everything that the steps of a convolution share. It is written to the output, or to a buffer of
/// its own, which is pooled into the output.
struct BoundConvolution {
  std::shared_ptr<const Cudnn> cudnn;
  Convolution shape;
  CudnnGraph::WindowSteps steps;
  std::vector<std::int64_t> bias_shape;
  CUdeviceptr input, weight, bias, convolved;
  std::shared_ptr<DeviceBuffer> convolved_memory;
};

/// The graphs of the two ways: all in one, or the bare convolution with classic calls after it.
CudnnGraph convolution_graph(const BoundConvolution& conv, bool fused) {
  CudnnGraph graph({.api = &conv.cudnn->api(), .cudnn = conv.cudnn});
  constexpr cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
  const Extents convolved = conv.shape.convolved_extents();
  const auto x = graph.buffer(f32, conv.shape.x_extents(), conv.input);
  const auto w = graph.buffer(f32, conv.shape.weight_extents(), conv.weight);
  const auto y = graph.buffer(f32, convolved, conv.convolved);
  const auto convolve = [&](CudnnGraph::Tensor result) {
    if (conv.shape.transposed) {
      graph.transposed_convolution(x, w, result, conv.steps);
    } else {
      graph.convolution(x, w, result, conv.steps);
    }
  };
  if (!fused) {
    convolve(y);
    graph.seal();
    return graph;
  }
  auto last = graph.intermediate(f32, convolved);
  convolve(last);
  if (conv.bias != 0) {
    const auto b = graph.buffer(f32, conv.bias_shape, conv.bias);
    const auto sum = conv.shape.relu ? graph.intermediate(f32, convolved) : y;
    graph.binary(CUDNN_POINTWISE_ADD, last, b, sum);
    last = sum;
  }
  if (conv.shape.relu) graph.unary(CUDNN_POINTWISE_RELU_FWD, last, y);
  graph.seal();
  return graph;
}

std::unique_ptr<Runnable> bias_step(const BoundConvolution& conv) {
  const auto bias_tensor =
      std::make_shared<CudnnTensor>(*conv.cudnn, CUDNN_DATA_FLOAT, conv.bias_shape);
  const auto tensor =
      std::make_shared<CudnnTensor>(*conv.cudnn, CUDNN_DATA_FLOAT, conv.shape.convolved_extents());
  return std::make_unique<CudnnCall>("cudnnAddTensor", [=](CUstream stream) {
    const float one = 1;
    conv.cudnn->set_stream(stream);
    conv.cudnn->check(
        conv.cudnn->api().cudnnAddTensor(conv.cudnn->handle(), &one, bias_tensor->get(),
                                         reinterpret_cast<const void*>(conv.bias), &one,
                                         tensor->get(), reinterpret_cast<void*>(conv.convolved)),
        "cudnnAddTensor");
  });
}

std::unique_ptr<Runnable> relu_step(const BoundConvolution& conv) {
  const CudnnApi& api = conv.cudnn->api();
  cudnnActivationDescriptor_t descriptor = nullptr;
  conv.cudnn->check(api.cudnnCreateActivationDescriptor(&descriptor),
                    "cudnnCreateActivationDescriptor");
  const auto relu = owned(descriptor, api.cudnnDestroyActivationDescriptor);
  conv.cudnn->check(
      api.cudnnSetActivationDescriptor(descriptor, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0),
      "cudnnSetActivationDescriptor");
  const auto tensor =
      std::make_shared<CudnnTensor>(*conv.cudnn, CUDNN_DATA_FLOAT, conv.shape.convolved_extents());
  return std::make_unique<CudnnCall>("cudnnActivationForward", [=](CUstream stream) {
    const float one = 1;
    const float zero = 0;
    conv.cudnn->set_stream(stream);
    conv.cudnn->check(conv.cudnn->api().cudnnActivationForward(
                          conv.cudnn->handle(), relu.get(), &one, tensor->get(),
                          reinterpret_cast<const void*>(conv.convolved), &zero, tensor->get(),
                          reinterpret_cast<void*>(conv.convolved)),
                      "cudnnActivationForward");
  });
}

BoundConvolution bound(const Convolution& asked, const LibraryRequest& request,
                       std::shared_ptr<const Cudnn> cudnn) {
  BoundConvolution conv{.cudnn = std::move(cudnn), .shape = asked.as_images()};
  const Convolution& shape = conv.shape;
  conv.steps = {shape.windows.stride, shape.windows.padding, shape.dilation};
  conv.bias_shape.assign(2 + shape.out.size(), 1);
  conv.bias_shape[1] = shape.filters;
  conv.input = request.at(shape.x);
  conv.weight = request.at(shape.weight);
  conv.bias = shape.bias.empty() ? 0 : request.at(shape.bias);
  conv.convolved = request.at(shape.y);
  if (shape.pooling) {
    std::int64_t bytes = sizeof(float);
    for (std::int64_t extent : shape.convolved_extents()) bytes *= extent;
    conv.convolved_memory = std::make_shared<DeviceBuffer>(bytes);
    conv.convolved = conv.convolved_memory->get();
  }
  return conv;
}

std::string name_of(const BoundConvolution& conv, bool fused) {
  std::string name = conv.shape.transposed ? "transposed convolution" : "convolution";
  if (!fused) return name;
  name = "fused " + name;
  const bool bias = conv.bias != 0, relu = conv.shape.relu;
  if (bias) name += relu ? ", bias" : " and bias";
  if (relu) name += " and ReLU";
  return name;
}

/// What runs on the convolution's own output.
std::vector<std::unique_ptr<Runnable>> later_steps(const BoundConvolution& conv, bool fused,
                                                   CUdeviceptr output) {
  std::vector<std::unique_ptr<Runnable>> steps;
  if (!fused && conv.bias != 0) steps.push_back(bias_step(conv));
  if (!fused && conv.shape.relu) steps.push_back(relu_step(conv));
  if (conv.shape.pooling) {
    steps.push_back(std::make_unique<WithMemory>(
        pooling_call(conv.cudnn, *conv.shape.pooling, conv.convolved, output),
        conv.convolved_memory));
  }
  return steps;
}

}  // namespace

MadeReference make_library_reference(const Convolution& shape, const LibraryRequest& request) {
  Result<std::shared_ptr<const Cudnn>> cudnn = Cudnn::open(request.device);
  if (!cudnn) return cudnn.error();
  const Math math = request.id == "cudnn_tf32" ? Math::tf32 : Math::fp32;
  const BoundConvolution conv = bound(shape, request, *cudnn);
  const CUdeviceptr output = request.at(shape.y);
  const bool has_more = conv.bias != 0 || conv.shape.relu;

  const std::string key = engine_key(request.id, request.problem, request.device.properties().name,
                                     (*cudnn)->api().version());

  EngineSearch search;
  search.offers = [&]() -> Result<std::vector<boost::json::object>> {
    // What is one convolution has no other way.
    const auto of = [&](bool fused) {
      return guarded([&]() -> Result<std::vector<boost::json::object>> {
        return engine_offers(convolution_graph(conv, fused), math, fused ? "fused" : "separate");
      });
    };
    Result<std::vector<boost::json::object>> separate = of(false);
    if (!has_more) return separate;
    Result<std::vector<boost::json::object>> offers = of(true);
    if (!offers || !separate) return offers ? offers : separate;
    offers->insert(offers->end(), separate->begin(), separate->end());
    return offers;
  };
  search.make = [&](const boost::json::object& choice) -> MadeReference {
    Result<EngineConfiguration> engine = EngineConfiguration::from_json(choice);
    if (!engine) return engine.error();
    const boost::json::value* variant = choice.if_contains("variant");
    const bool fused = variant && *variant == "fused";
    return guarded([&]() -> MadeReference {
      MadeReference plan =
          convolution_graph(conv, fused).plan(*engine, key + (fused ? " | fused" : ""));
      if (!plan) return plan.error();
      std::vector<std::unique_ptr<Runnable>> steps;
      steps.push_back(std::move(*plan));
      for (auto& step : later_steps(conv, fused, output)) steps.push_back(std::move(step));
      return std::unique_ptr<Runnable>(
          std::make_unique<Sequence>(std::move(steps), name_of(conv, fused)));
    });
  };
  return make_fastest(key, search, request.device);
}

}  // namespace rekernel

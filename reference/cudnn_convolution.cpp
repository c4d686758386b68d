#include "reference/cudnn_graph.h"
#include "reference/engine_choice.h"
#include "reference/library_references.h"

namespace rekernel {

namespace {

template <class T>
std::shared_ptr<std::remove_pointer_t<T>> owned(T descriptor, cudnnStatus_t (*destroy)(T)) {
  return {descriptor, destroy};
}

/// Everything that the steps of a convolution problem share. conv2d writes the convolution to its
/// output; conv2d_relu_maxpool writes it to a buffer of its own and pools that into its output.
struct Convolution {
  std::shared_ptr<const Cudnn> cudnn;
  std::int64_t stride, padding;
  std::vector<std::int64_t> input_shape, weight_shape, bias_shape, convolved_shape;
  CUdeviceptr input, weight, bias, convolved;
  bool relu = false;
  std::shared_ptr<DeviceBuffer> convolved_memory;
};

/// The graphs of the two ways: all in one, or the bare convolution with classic calls after it.
CudnnGraph convolution_graph(const Convolution& conv, bool fused) {
  CudnnGraph graph({.api = &conv.cudnn->api(), .cudnn = conv.cudnn});
  constexpr cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
  const auto x = graph.buffer(f32, conv.input_shape, conv.input);
  const auto w = graph.buffer(f32, conv.weight_shape, conv.weight);
  const auto y = graph.buffer(f32, conv.convolved_shape, conv.convolved);
  if (!fused) {
    graph.convolution(x, w, y, conv.stride, conv.padding);
  } else {
    const auto b = graph.buffer(f32, conv.bias_shape, conv.bias);
    const auto product = graph.intermediate(f32, conv.convolved_shape);
    graph.convolution(x, w, product, conv.stride, conv.padding);
    if (conv.relu) {
      const auto sum = graph.intermediate(f32, conv.convolved_shape);
      graph.binary(CUDNN_POINTWISE_ADD, product, b, sum);
      graph.unary(CUDNN_POINTWISE_RELU_FWD, sum, y);
    } else {
      graph.binary(CUDNN_POINTWISE_ADD, product, b, y);
    }
  }
  graph.seal();
  return graph;
}

std::unique_ptr<Runnable> bias_step(const Convolution& conv) {
  const auto bias_tensor =
      std::make_shared<CudnnTensor>(*conv.cudnn, CUDNN_DATA_FLOAT, conv.bias_shape);
  const auto tensor =
      std::make_shared<CudnnTensor>(*conv.cudnn, CUDNN_DATA_FLOAT, conv.convolved_shape);
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

std::unique_ptr<Runnable> relu_step(const Convolution& conv) {
  const CudnnApi& api = conv.cudnn->api();
  cudnnActivationDescriptor_t descriptor = nullptr;
  conv.cudnn->check(api.cudnnCreateActivationDescriptor(&descriptor),
                    "cudnnCreateActivationDescriptor");
  const auto relu = owned(descriptor, api.cudnnDestroyActivationDescriptor);
  conv.cudnn->check(
      api.cudnnSetActivationDescriptor(descriptor, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0),
      "cudnnSetActivationDescriptor");
  const auto tensor =
      std::make_shared<CudnnTensor>(*conv.cudnn, CUDNN_DATA_FLOAT, conv.convolved_shape);
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

std::unique_ptr<Runnable> pool_step(const Convolution& conv, const Problem& problem,
                                    CUdeviceptr output) {
  const CudnnApi& api = conv.cudnn->api();
  cudnnPoolingDescriptor_t descriptor = nullptr;
  conv.cudnn->check(api.cudnnCreatePoolingDescriptor(&descriptor), "cudnnCreatePoolingDescriptor");
  const auto pooling = owned(descriptor, api.cudnnDestroyPoolingDescriptor);
  const int window = static_cast<int>(problem.attribute("pool_kernel"));
  const int stride = static_cast<int>(problem.attribute("pool_stride"));
  conv.cudnn->check(
      api.cudnnSetPooling2dDescriptor(descriptor, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, window,
                                      window, 0, 0, stride, stride),
      "cudnnSetPooling2dDescriptor");
  const auto from =
      std::make_shared<CudnnTensor>(*conv.cudnn, CUDNN_DATA_FLOAT, conv.convolved_shape);
  const auto to = std::make_shared<CudnnTensor>(*conv.cudnn, CUDNN_DATA_FLOAT,
                                                problem.outputs().front()->shape);
  return std::make_unique<CudnnCall>("cudnnPoolingForward", [=](CUstream stream) {
    const float one = 1;
    const float zero = 0;
    conv.cudnn->set_stream(stream);
    conv.cudnn->check(conv.cudnn->api().cudnnPoolingForward(
                          conv.cudnn->handle(), pooling.get(), &one, from->get(),
                          reinterpret_cast<const void*>(conv.convolved), &zero, to->get(),
                          reinterpret_cast<void*>(output)),
                      "cudnnPoolingForward");
  });
}

Convolution describe_convolution(const Problem& problem, const Bindings& bindings,
                                 std::shared_ptr<const Cudnn> cudnn) {
  Convolution conv{.cudnn = std::move(cudnn),
                   .stride = problem.attribute("stride"),
                   .padding = problem.attribute("padding")};
  const std::int64_t filters = problem.attribute("filters");
  conv.input_shape = problem.find_tensor("input")->shape;
  conv.weight_shape = problem.find_tensor("weight")->shape;
  conv.bias_shape = {1, filters, 1, 1};
  conv.convolved_shape = {problem.attribute("batch"), filters, problem.attribute("out_height"),
                          problem.attribute("out_width")};
  conv.input = bindings.at("input").pointer;
  conv.weight = bindings.at("weight").pointer;
  conv.bias = bindings.at("bias").pointer;
  return conv;
}

}  // namespace

Result<std::unique_ptr<Runnable>> make_cudnn_convolution(const ReferenceInfo& info,
                                                         const Problem& problem,
                                                         const Bindings& bindings,
                                                         const Device& device) {
  Result<std::shared_ptr<const Cudnn>> cudnn = Cudnn::open();
  if (!cudnn) return cudnn.error();
  const Math math = info.id == "cudnn_tf32" ? Math::tf32 : Math::fp32;
  const bool pooled = problem.id == "conv2d_relu_maxpool";
  const CUdeviceptr output = bindings.at("output").pointer;
  Convolution conv = describe_convolution(problem, bindings, *cudnn);
  conv.relu = pooled;
  conv.convolved = output;
  if (pooled) {
    std::int64_t bytes = sizeof(float);
    for (std::int64_t extent : conv.convolved_shape) bytes *= extent;
    conv.convolved_memory = std::make_shared<DeviceBuffer>(bytes);
    conv.convolved = conv.convolved_memory->get();
  }
  const CudnnGraph fused = convolution_graph(conv, true);
  const CudnnGraph bare = convolution_graph(conv, false);

  EngineSearch search;
  search.offers = [&]() -> Result<std::vector<boost::json::object>> {
    Result<std::vector<boost::json::object>> offers = engine_offers(fused, math, "fused");
    Result<std::vector<boost::json::object>> separate = engine_offers(bare, math, "separate");
    if (!offers || !separate) return offers ? offers : separate;
    offers->insert(offers->end(), separate->begin(), separate->end());
    return offers;
  };
  search.make = [&](const boost::json::object& choice) -> Result<std::unique_ptr<Runnable>> {
    Result<EngineConfiguration> engine = EngineConfiguration::from_json(choice);
    if (!engine) return engine.error();
    const boost::json::value* variant = choice.if_contains("variant");
    const bool all_in_one = variant && *variant == "fused";
    Result<std::unique_ptr<Runnable>> plan = (all_in_one ? fused : bare).plan(*engine);
    if (!plan) return plan.error();
    const char* name = !all_in_one ? "convolution"
                       : conv.relu ? "fused convolution, bias and ReLU"
                                   : "fused convolution and bias";
    std::vector<std::unique_ptr<Runnable>> steps;
    steps.push_back(std::move(*plan));
    if (!all_in_one) steps.push_back(bias_step(conv));
    if (!all_in_one && conv.relu) steps.push_back(relu_step(conv));
    if (pooled) steps.push_back(pool_step(conv, problem, output));
    return std::unique_ptr<Runnable>(std::make_unique<Sequence>(std::move(steps), name));
  };
  return make_fastest(
      engine_key(info.id, problem, device.properties().name, (*cudnn)->api().version()), search,
      device);
}

}  // namespace rekernel

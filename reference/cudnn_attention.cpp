#include <limits>

#include "reference/cudnn_graph.h"
#include "reference/engine_choice.h"
#include "reference/library_references.h"

namespace rekernel {

namespace {

/// Scaled dot-product attention as an operation graph. cuDNN's attention engines recognise this
/// very shape, the unused log-sum-exp included: without it every engine refuses the graph.
void add_attention(CudnnGraph& graph, const Problem& problem, const Bindings& bindings) {
  const std::int64_t batch = problem.attribute("batch");
  const std::int64_t heads = problem.attribute("heads");
  const std::int64_t length = problem.attribute("length");
  const std::int64_t head_dim = problem.attribute("head_dim");
  const std::vector<std::int64_t> rows = {batch, heads, length, head_dim};
  const std::vector<std::int64_t> scores = {batch, heads, length, length};
  const std::vector<std::int64_t> per_row = {batch, heads, length, 1};
  constexpr cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
  constexpr cudnnDataType_t f16 = CUDNN_DATA_HALF;

  const auto q = graph.buffer(f16, rows, bindings.at("q").pointer);
  const auto k_transposed =
      graph.buffer(f16, {batch, heads, head_dim, length}, bindings.at("k").pointer,
                   {heads * length * head_dim, length * head_dim, 1, head_dim});
  const auto v = graph.buffer(f16, rows, bindings.at("v").pointer);
  const auto o = graph.buffer(f16, rows, bindings.at("o").pointer);

  const auto product = graph.intermediate(f32, scores);
  graph.matmul(q, k_transposed, product);
  auto score = graph.intermediate(f32, scores);
  const auto scale = graph.scalar(static_cast<float>(problem.real_attribute("scale")), 4);
  graph.binary(CUDNN_POINTWISE_MUL, product, scale, score);

  if (problem.attribute("causal") != 0) {
    const auto row = graph.intermediate(CUDNN_DATA_INT32, scores);
    const auto column = graph.intermediate(CUDNN_DATA_INT32, scores);
    const auto visible = graph.intermediate(CUDNN_DATA_BOOLEAN, scores);
    const auto masked = graph.intermediate(f32, scores);
    graph.index(2, score, row);
    graph.index(3, score, column);
    graph.binary(CUDNN_POINTWISE_CMP_GE, row, column, visible, CUDNN_DATA_BOOLEAN);
    graph.select(score, graph.scalar(-std::numeric_limits<float>::infinity(), 4), visible, masked);
    score = masked;
  }

  const auto maximum = graph.intermediate(f32, per_row);
  const auto shifted = graph.intermediate(f32, scores);
  const auto exponential = graph.intermediate(f32, scores);
  const auto sum = graph.intermediate(f32, per_row);
  const auto log_sum = graph.intermediate(f32, per_row);
  const auto log_sum_exp = graph.intermediate(f32, per_row);
  const auto probability = graph.intermediate(f16, scores);
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, score, maximum);
  graph.binary(CUDNN_POINTWISE_SUB, score, maximum, shifted);
  graph.unary(CUDNN_POINTWISE_EXP, shifted, exponential);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponential, sum);
  graph.unary(CUDNN_POINTWISE_LOG, sum, log_sum);
  graph.binary(CUDNN_POINTWISE_ADD, maximum, log_sum, log_sum_exp);
  graph.binary(CUDNN_POINTWISE_DIV, exponential, sum, probability);
  graph.matmul(probability, v, o);
}

}  // namespace

Result<std::unique_ptr<Runnable>> make_cudnn_attention(const ReferenceInfo& info,
                                                       const Problem& problem,
                                                       const Bindings& bindings,
                                                       const Device& device) {
  Result<std::shared_ptr<const Cudnn>> cudnn = Cudnn::open();
  if (!cudnn) return cudnn.error();
  CudnnGraph graph({.api = &(*cudnn)->api(), .cudnn = *cudnn});
  add_attention(graph, problem, bindings);
  graph.seal();

  EngineSearch search;
  search.offers = [&]() { return engine_offers(graph, Math::any, "attention"); };
  search.make = [&](const boost::json::object& choice) -> Result<std::unique_ptr<Runnable>> {
    Result<EngineConfiguration> engine = EngineConfiguration::from_json(choice);
    if (!engine) return engine.error();
    return graph.plan(*engine);
  };
  return make_fastest(
      engine_key(info.id, problem, device.properties().name, (*cudnn)->api().version()), search,
      device);
}

}  // namespace rekernel

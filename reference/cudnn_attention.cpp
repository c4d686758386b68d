#include <limits>

#include "reference/cudnn_graph.h"
#include "reference/engine_choice.h"
#include "reference/library_references.h"

namespace rekernel {

namespace {

/// Scaled dot-product attention as an operation graph. cuDNN's attention engines recognise this
/// very shape, the unused log-sum-exp included: without it every engine refuses the graph.
void add_attention(CudnnGraph& graph, const Attention& shape, const LibraryRequest& request) {
  const std::int64_t width = shape.head_dim;
  const Extents rows = {shape.batch, shape.heads, shape.queries, width};
  const Extents key_rows = {shape.batch, shape.key_heads, shape.keys, width};
  const Extents scores = {shape.batch, shape.heads, shape.queries, shape.keys};
  const Extents per_row = {shape.batch, shape.heads, shape.queries, 1};
  constexpr cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
  const cudnnDataType_t type = cudnn_type(shape.type);

  const auto q = graph.buffer(type, rows, request.at(shape.q));
  const auto k_transposed =
      graph.buffer(type, {shape.batch, shape.key_heads, width, shape.keys}, request.at(shape.k),
                   {shape.key_heads * shape.keys * width, shape.keys * width, 1, width});
  const auto v = graph.buffer(type, key_rows, request.at(shape.v));
  const auto o = graph.buffer(type, rows, request.at(shape.o));

  const auto product = graph.intermediate(f32, scores);
  graph.matmul(q, k_transposed, product);
  auto score = graph.intermediate(f32, scores);
  const auto scale = graph.scalar(static_cast<float>(shape.scale), 4);
  graph.binary(CUDNN_POINTWISE_MUL, product, scale, score);

  if (shape.causal) {
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
  const auto probability = graph.intermediate(type, scores);
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

MadeReference make_library_reference(const Attention& shape, const LibraryRequest& request) {
  Result<std::shared_ptr<const Cudnn>> cudnn = Cudnn::open();
  if (!cudnn) return cudnn.error();
  CudnnGraph graph({.api = &(*cudnn)->api(), .cudnn = *cudnn});
  add_attention(graph, shape, request);
  graph.seal();

  EngineSearch search;
  search.offers = [&]() { return engine_offers(graph, Math::any, "attention"); };
  search.make = [&](const boost::json::object& choice) -> MadeReference {
    Result<EngineConfiguration> engine = EngineConfiguration::from_json(choice);
    if (!engine) return engine.error();
    return graph.plan(*engine);
  };
  return make_fastest(engine_key(request.id, request.problem, request.device.properties().name,
                                 (*cudnn)->api().version()),
                      search, request.device);
}

}  // namespace rekernel

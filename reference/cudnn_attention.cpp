#include <limits>
#include <optional>
#include <vector>

#include "reference/cudnn_graph.h"
#include "reference/engine_choice.h"
#include "reference/library_references.h"

namespace rekernel {

namespace {

constexpr cudnnDataType_t f32 = CUDNN_DATA_FLOAT;

/// score where the condition holds, elsewhere what exp turns into 0.
CudnnGraph::Tensor masked(CudnnGraph& graph, CudnnGraph::Tensor score, CudnnGraph::Tensor condition,
                          const Extents& extents) {
  const auto result = graph.intermediate(f32, extents);
  graph.select(score, graph.scalar(-std::numeric_limits<float>::infinity(), 4), condition, result);
  return result;
}

/// An index of each score: of its query (axis 2) or of its key (3).
CudnnGraph::Tensor index_of(CudnnGraph& graph, std::int64_t axis, CudnnGraph::Tensor score,
                            const Extents& extents) {
  const auto result = graph.intermediate(CUDNN_DATA_INT32, extents);
  graph.index(axis, score, result);
  return result;
}

CudnnGraph::Tensor compared(CudnnGraph& graph, cudnnPointwiseMode_t how, CudnnGraph::Tensor a,
                            CudnnGraph::Tensor b, const Extents& extents) {
  const auto result = graph.intermediate(CUDNN_DATA_BOOLEAN, extents);
  graph.binary(how, a, b, result, CUDNN_DATA_BOOLEAN);
  return result;
}

std::shared_ptr<const DeviceBuffer> integers(std::int64_t count, std::int32_t value) {
  const std::vector<std::int32_t> values(static_cast<std::size_t>(count), value);
  auto buffer = std::make_shared<DeviceBuffer>(count * std::int64_t{sizeof value});
  REKERNEL_CUDA(cuMemcpyHtoD(buffer->get(), values.data(), values.size() * sizeof value));
  return buffer;
}

/// Where an attention's tensors lie on the device. Of shapes with lengths: i32 (batch), how many
/// keys a sequence has.
struct AttentionBuffers {
  CUdeviceptr q = 0, k = 0, v = 0, o = 0, key_lengths = 0;
};

/// Scaled dot-product attention as an operation graph. cuDNN's attention engines recognise this
/// very shape, the unused log-sum-exp included: without it every engine refuses the graph.
void add_attention(CudnnGraph& graph, const Attention& shape, const AttentionBuffers& buffers) {
  const std::int64_t width = shape.head_dim;
  const Extents rows = {shape.batch, shape.heads, shape.queries, width};
  const Extents key_rows = {shape.batch, shape.key_heads, shape.keys, width};
  const Extents scores = {shape.batch, shape.heads, shape.queries, shape.keys};
  const Extents per_row = {shape.batch, shape.heads, shape.queries, 1};
  const cudnnDataType_t type = cudnn_type(shape.type);

  const auto q = graph.buffer(type, rows, buffers.q);
  const auto k_transposed =
      graph.buffer(type, {shape.batch, shape.key_heads, width, shape.keys}, buffers.k,
                   {shape.key_heads * shape.keys * width, shape.keys * width, 1, width});
  const auto v = graph.buffer(type, key_rows, buffers.v);
  const auto o = graph.buffer(type, rows, buffers.o);
  std::optional<CudnnGraph::Tensor> query_lengths, key_lengths;
  if (!shape.lengths.empty()) {
    const Extents per_sequence = {shape.batch, 1, 1, 1};
    query_lengths = graph.constant(CUDNN_DATA_INT32, per_sequence,
                                   integers(shape.batch, static_cast<std::int32_t>(shape.queries)));
    key_lengths = graph.buffer(CUDNN_DATA_INT32, per_sequence, buffers.key_lengths);
  }

  const auto product = graph.intermediate(f32, scores);
  graph.matmul(q, k_transposed, product,
               {.rows = query_lengths, .columns = key_lengths, .inner = {}});
  auto score = graph.intermediate(f32, scores);
  const auto scale = graph.scalar(static_cast<float>(shape.scale), 4);
  graph.binary(CUDNN_POINTWISE_MUL, product, scale, score);

  if (key_lengths) {
    const auto is_row = compared(graph, CUDNN_POINTWISE_CMP_LT, index_of(graph, 2, score, scores),
                                 *query_lengths, scores);
    const auto is_key = compared(graph, CUDNN_POINTWISE_CMP_LT, index_of(graph, 3, score, scores),
                                 *key_lengths, scores);
    const auto visible = graph.intermediate(CUDNN_DATA_BOOLEAN, scores);
    graph.binary(CUDNN_POINTWISE_LOGICAL_AND, is_row, is_key, visible, CUDNN_DATA_BOOLEAN);
    score = masked(graph, score, visible, scores);
  }
  if (shape.causal) {
    const auto row = index_of(graph, 2, score, scores);
    const auto key = index_of(graph, 3, score, scores);
    score = masked(graph, score, compared(graph, CUDNN_POINTWISE_CMP_GE, row, key, scores), scores);
  }
  if (shape.window > 0) {
    const auto row = index_of(graph, 2, score, scores);
    const auto key = index_of(graph, 3, score, scores);
    const auto end = graph.intermediate(f32, scores);
    graph.binary(CUDNN_POINTWISE_ADD, key, graph.scalar(static_cast<float>(shape.window), 4), end);
    score = masked(graph, score, compared(graph, CUDNN_POINTWISE_CMP_GT, end, row, scores), scores);
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
  graph.matmul(probability, v, o, {.rows = query_lengths, .columns = {}, .inner = key_lengths});
}

}  // namespace

MadeReference make_library_reference(const Attention& shape, const LibraryRequest& request) {
  Result<std::shared_ptr<const Cudnn>> cudnn = Cudnn::open(request.device);
  if (!cudnn) return cudnn.error();
  CudnnGraph graph({.api = &(*cudnn)->api(), .cudnn = *cudnn});
  AttentionBuffers buffers{request.at(shape.q), request.at(shape.k), request.at(shape.v),
                           request.at(shape.o)};
  if (!shape.lengths.empty()) buffers.key_lengths = request.at(shape.lengths);
  add_attention(graph, shape, buffers);
  graph.seal();

  const std::string key = engine_key(request.id, request.problem, request.device.properties().name,
                                     (*cudnn)->api().version());

  EngineSearch search;
  search.offers = [&]() { return engine_offers(graph, Math::any, "attention"); };
  search.make = [&](const boost::json::object& choice) -> MadeReference {
    Result<EngineConfiguration> engine = EngineConfiguration::from_json(choice);
    if (!engine) return engine.error();
    return graph.plan(*engine, key);
  };
  return make_fastest(key, search, request.device);
}

}  // namespace rekernel

#include "reference/cudnn_graph.h"

#include <algorithm>
#include <stdexcept>

#include "harness/base/json.h"

namespace rekernel {

namespace {

/// Device memory comes from the driver's allocator, which aligns to more than any engine asks for.
constexpr std::int64_t buffer_alignment = 16;
/// Kept by a handle; one that has more of them begins again.
constexpr std::size_t most_kept_plans = 64;

std::vector<std::int64_t> packed_strides(const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> strides(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

/// A finalized plan, its workspace and the buffers that it runs on.
class CudnnPlan : public Runnable {
 public:
  CudnnPlan(std::shared_ptr<const Cudnn> cudnn, std::shared_ptr<const BuiltPlan> plan,
            BackendDescriptor variant, DeviceBuffer workspace,
            std::vector<std::shared_ptr<const void>> owned, std::string name)
      : cudnn_(std::move(cudnn)),
        plan_(std::move(plan)),
        variant_(std::move(variant)),
        workspace_(std::move(workspace)),
        owned_(std::move(owned)),
        name_(std::move(name)) {}

  void enqueue(CUstream stream) override {
    cudnn_->set_stream(stream);
    cudnn_->check(
        cudnn_->api().cudnnBackendExecute(cudnn_->handle(), plan_->plan.get(), variant_.get()),
        "cudnnBackendExecute");
  }
  std::string details() const override { return name_; }

 private:
  std::shared_ptr<const Cudnn> cudnn_;  // first: descriptors go before the handle
  std::shared_ptr<const BuiltPlan> plan_;
  BackendDescriptor variant_;
  DeviceBuffer workspace_;
  std::vector<std::shared_ptr<const void>> owned_;  // the variant pack points at these
  std::string name_;
};

}  // namespace

BackendDescriptor::BackendDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type)
    : api_(&api) {
  const cudnnStatus_t status = api.cudnnBackendCreateDescriptor(type, &descriptor_);
  if (status != CUDNN_STATUS_SUCCESS) {
    throw std::runtime_error("cuDNN descriptor " + std::to_string(type) + ": " +
                             api.describe(status));
  }
}

BackendDescriptor& BackendDescriptor::operator=(BackendDescriptor&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

BackendDescriptor::~BackendDescriptor() {
  if (descriptor_) api_->cudnnBackendDestroyDescriptor(descriptor_);
}

void BackendDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::int64_t count, const void* values) {
  const cudnnStatus_t status =
      api_->cudnnBackendSetAttribute(descriptor_, name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS) {
    throw std::runtime_error("cuDNN attribute " + std::to_string(name) + ": " +
                             api_->describe(status));
  }
}

void BackendDescriptor::set_integers(cudnnBackendAttributeName_t name,
                                     const std::vector<std::int64_t>& values) {
  set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

void BackendDescriptor::set_integer(cudnnBackendAttributeName_t name, std::int64_t value) {
  set(name, CUDNN_TYPE_INT64, 1, &value);
}

void BackendDescriptor::set_type(cudnnBackendAttributeName_t name, cudnnDataType_t type) {
  set(name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

void BackendDescriptor::set_descriptor(cudnnBackendAttributeName_t name,
                                       const BackendDescriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
}

void BackendDescriptor::finalize(const char* what) {
  const cudnnStatus_t status = api_->cudnnBackendFinalize(descriptor_);
  if (status != CUDNN_STATUS_SUCCESS) {
    throw std::runtime_error(std::string("cuDNN ") + what + ": " + api_->describe(status));
  }
}

std::int64_t BackendDescriptor::integer(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  std::int64_t count = 0;
  const cudnnStatus_t status =
      api_->cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_INT64, 1, &count, &value);
  if (status != CUDNN_STATUS_SUCCESS || count != 1) {
    throw std::runtime_error("cuDNN attribute " + std::to_string(name) + ": " +
                             api_->describe(status));
  }
  return value;
}

std::string EngineConfiguration::name() const {
  std::string text = "eng" + std::to_string(engine);
  for (const auto& [type, value] : knobs) {
    text += "_k" + std::to_string(type) + "=" + std::to_string(value);
  }
  return text;
}

boost::json::object EngineConfiguration::to_json() const {
  boost::json::array list;
  for (const auto& [type, value] : knobs) list.push_back(boost::json::array{type, value});
  return {{"engine", engine}, {"knobs", std::move(list)}};
}

Result<EngineConfiguration> EngineConfiguration::from_json(const boost::json::value& value) {
  JsonReader root("engine", value);
  EngineConfiguration configuration;
  configuration.engine = root.required("engine").integer(0, 1 << 20);
  for (JsonReader& knob : root.required("knobs").array(0, CUDNN_KNOB_TYPE_COUNTS)) {
    std::vector<JsonReader> pair = knob.array(2, 2);
    if (root.error()) break;
    configuration.knobs.emplace_back(pair[0].integer(0, 1 << 20),
                                     pair[1].integer(INT64_MIN, INT64_MAX));
  }
  if (auto error = root.error()) return *error;
  return configuration;
}

CudnnGraph::CudnnGraph(CudnnTarget target) : target_(std::move(target)) {}

CudnnGraph::Tensor CudnnGraph::add_tensor(cudnnDataType_t type,
                                          const std::vector<std::int64_t>& extents,
                                          std::vector<std::int64_t> strides, bool is_virtual,
                                          bool by_value, std::int64_t alignment) {
  if (strides.empty()) strides = packed_strides(extents);
  BackendDescriptor descriptor(*target_.api, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptor.set_type(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  descriptor.set_integers(CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
  descriptor.set_integers(CUDNN_ATTR_TENSOR_STRIDES, strides);
  descriptor.set_integer(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  descriptor.set_integer(CUDNN_ATTR_TENSOR_UNIQUE_ID,
                         static_cast<std::int64_t>(values_.size()) + 1);
  if (is_virtual) descriptor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  if (by_value) descriptor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
  descriptor.finalize("tensor");
  values_.push_back(Value{.descriptor = std::move(descriptor), .in_memory = !is_virtual});
  return values_.size() - 1;
}

CudnnGraph::Tensor CudnnGraph::buffer(cudnnDataType_t type,
                                      const std::vector<std::int64_t>& extents, CUdeviceptr pointer,
                                      std::vector<std::int64_t> strides) {
  const Tensor tensor =
      add_tensor(type, extents, std::move(strides), false, false, buffer_alignment);
  values_[tensor].pointer = reinterpret_cast<void*>(pointer);
  return tensor;
}

CudnnGraph::Tensor CudnnGraph::constant(cudnnDataType_t type,
                                        const std::vector<std::int64_t>& extents,
                                        std::shared_ptr<const DeviceBuffer> buffer) {
  const Tensor tensor = this->buffer(type, extents, buffer->get());
  values_[tensor].owned = std::move(buffer);
  return tensor;
}

CudnnGraph::Tensor CudnnGraph::scalar(float value, std::size_t rank) {
  const Tensor tensor = add_tensor(CUDNN_DATA_FLOAT, std::vector<std::int64_t>(rank, 1), {}, false,
                                   true, sizeof(float));
  const auto host = std::make_shared<float>(value);
  values_[tensor].pointer = host.get();
  values_[tensor].owned = host;
  return tensor;
}

CudnnGraph::Tensor CudnnGraph::intermediate(cudnnDataType_t type,
                                            const std::vector<std::int64_t>& extents) {
  return add_tensor(type, extents, {}, true, false, buffer_alignment);
}

BackendDescriptor& CudnnGraph::add_operation(cudnnBackendDescriptorType_t type) {
  return operations_.emplace_back(*target_.api, type);
}

BackendDescriptor& CudnnGraph::convolution_shape(const WindowSteps& steps) {
  BackendDescriptor& shape =
      parts_.emplace_back(*target_.api, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  shape.set_type(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  shape.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  shape.set_integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                    static_cast<std::int64_t>(steps.stride.size()));
  shape.set_integers(CUDNN_ATTR_CONVOLUTION_DILATIONS, steps.dilation);
  shape.set_integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, steps.stride);
  shape.set_integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, steps.padding);
  shape.set_integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, steps.padding);
  shape.finalize("convolution");
  return shape;
}

void CudnnGraph::convolution(Tensor x, Tensor weight, Tensor y, const WindowSteps& steps) {
  const BackendDescriptor& shape = convolution_shape(steps);
  BackendDescriptor& operation =
      add_operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  const float alpha = 1;
  const float beta = 0;
  operation.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, shape);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, values_[x].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, values_[weight].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, values_[y].descriptor);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &beta);
  operation.finalize("convolution operation");
}

void CudnnGraph::transposed_convolution(Tensor x, Tensor weight, Tensor y,
                                        const WindowSteps& steps) {
  const BackendDescriptor& shape = convolution_shape(steps);
  BackendDescriptor& operation =
      add_operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  const float alpha = 1;
  const float beta = 0;
  operation.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, shape);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, values_[x].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, values_[weight].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, values_[y].descriptor);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1, &beta);
  operation.finalize("transposed convolution operation");
}

BackendDescriptor& CudnnGraph::pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute,
                                         std::int64_t axis) {
  BackendDescriptor& function =
      parts_.emplace_back(*target_.api, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  function.set_type(CUDNN_ATTR_POINTWISE_MATH_PREC, compute);
  if (axis >= 0) function.set_integer(CUDNN_ATTR_POINTWISE_AXIS, axis);
  function.finalize("pointwise function");

  BackendDescriptor& operation = add_operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
  return operation;
}

void CudnnGraph::unary(cudnnPointwiseMode_t mode, Tensor x, Tensor y) {
  BackendDescriptor& operation = pointwise(mode, CUDNN_DATA_FLOAT);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, values_[x].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, values_[y].descriptor);
  operation.finalize("pointwise operation");
}

void CudnnGraph::binary(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y,
                        cudnnDataType_t compute) {
  BackendDescriptor& operation = pointwise(mode, compute);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, values_[x].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, values_[b].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, values_[y].descriptor);
  operation.finalize("pointwise operation");
}

void CudnnGraph::select(Tensor x, Tensor b, Tensor condition, Tensor y) {
  BackendDescriptor& operation = pointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, values_[x].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, values_[b].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, values_[condition].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, values_[y].descriptor);
  operation.finalize("select operation");
}

void CudnnGraph::index(std::int64_t axis, Tensor x, Tensor y) {
  BackendDescriptor& operation = pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, values_[x].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, values_[y].descriptor);
  operation.finalize("index operation");
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t reduction, Tensor x, Tensor y) {
  BackendDescriptor& function =
      parts_.emplace_back(*target_.api, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  function.set_type(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  function.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &reduction);
  function.finalize("reduction");

  BackendDescriptor& operation = add_operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC, function);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, values_[x].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, values_[y].descriptor);
  operation.finalize("reduction operation");
}

void CudnnGraph::matmul(Tensor a, Tensor b, Tensor c, const Lengths& lengths) {
  BackendDescriptor& function = parts_.emplace_back(*target_.api, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  function.set_type(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  if (lengths.columns) {
    const double padding = 0;
    function.set(CUDNN_ATTR_MATMUL_PADDING_VALUE, CUDNN_TYPE_DOUBLE, 1, &padding);
  }
  function.finalize("matrix product");

  BackendDescriptor& operation = add_operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_DESC, function);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_ADESC, values_[a].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_BDESC, values_[b].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_CDESC, values_[c].descriptor);
  for (const auto& [attribute, length] :
       {std::pair(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, lengths.rows),
        std::pair(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, lengths.columns),
        std::pair(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, lengths.inner)}) {
    if (length) operation.set_descriptor(attribute, values_[*length].descriptor);
  }
  operation.finalize("matrix product operation");
}

void CudnnGraph::layer_norm(cudnnBackendNormFwdPhase_t phase, Tensor x, Tensor scale, Tensor bias,
                            Tensor epsilon, Tensor y, Tensor mean, Tensor inverse_deviation) {
  const cudnnBackendNormMode_t mode = CUDNN_LAYER_NORM;
  BackendDescriptor& operation = add_operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode);
  operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, values_[x].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, values_[scale].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, values_[bias].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, values_[epsilon].descriptor);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, values_[y].descriptor);
  if (phase == CUDNN_NORM_FWD_TRAINING) {
    operation.set_descriptor(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, values_[mean].descriptor);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC,
                             values_[inverse_deviation].descriptor);
  }
  operation.finalize("layer norm operation");
}

void CudnnGraph::seal() {
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const BackendDescriptor& operation : operations_) operations.push_back(operation.get());
  graph_ =
      std::make_shared<BackendDescriptor>(*target_.api, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph_->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              static_cast<std::int64_t>(operations.size()), operations.data());
  if (target_.cudnn) {
    const cudnnHandle_t handle = target_.cudnn->handle();
    graph_->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  }
  graph_->finalize("operation graph");
}

BackendDescriptor CudnnGraph::engine_descriptor(std::int64_t index) const {
  BackendDescriptor engine(*target_.api, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set_descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, *graph_);
  engine.set_integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
  if (target_.device_properties) {
    engine.set_descriptor(CUDNN_ATTR_ENGINE_DEVICEPROP, *target_.device_properties);
  }
  engine.finalize("engine");
  return engine;
}

bool CudnnGraph::allowed(const BackendDescriptor& engine, Math math) const {
  if (math == Math::any) return true;
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {};
  std::int64_t count = 0;
  const cudnnStatus_t status = target_.api->cudnnBackendGetAttribute(
      engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes);
  // An engine that keeps its precision secret does not count.
  if (status != CUDNN_STATUS_SUCCESS) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    if (notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
        notes[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) {
      return false;
    }
    if (math == Math::fp32 && notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) return false;
  }
  return true;
}

EngineConfiguration CudnnGraph::read_configuration(const BackendDescriptor& configuration,
                                                   const BackendDescriptor& engine) const {
  EngineConfiguration result;
  result.engine = engine.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);

  std::vector<BackendDescriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    knobs.emplace_back(*target_.api, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    handles.push_back(knobs.back().get());
  }
  std::int64_t count = 0;
  const cudnnStatus_t status = target_.api->cudnnBackendGetAttribute(
      configuration.get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
      CUDNN_KNOB_TYPE_COUNTS, &count, handles.data());
  if (status != CUDNN_STATUS_SUCCESS) return result;
  for (std::int64_t i = 0; i < count; ++i) {
    cudnnBackendKnobType_t type{};
    std::int64_t one = 0;
    if (target_.api->cudnnBackendGetAttribute(knobs[i].get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                              CUDNN_TYPE_KNOB_TYPE, 1, &one,
                                              &type) != CUDNN_STATUS_SUCCESS) {
      continue;
    }
    result.knobs.emplace_back(static_cast<std::int64_t>(type),
                              knobs[i].integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  std::sort(result.knobs.begin(), result.knobs.end());
  return result;
}

std::vector<EngineConfiguration> CudnnGraph::heuristic(cudnnBackendHeurMode_t mode,
                                                       Math math) const {
  BackendDescriptor heuristic(*target_.api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set_descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target_.device_properties) {
    heuristic.set_descriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target_.device_properties);
  }
  heuristic.finalize("heuristic");

  std::int64_t count = 0;
  if (target_.api->cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                                            nullptr) != CUDNN_STATUS_SUCCESS) {
    return {};
  }
  std::vector<BackendDescriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    configurations.emplace_back(*target_.api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    handles.push_back(configurations.back().get());
  }
  if (target_.api->cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                                            handles.data()) != CUDNN_STATUS_SUCCESS) {
    return {};
  }

  std::vector<EngineConfiguration> result;
  for (std::int64_t i = 0; i < count; ++i) {
    BackendDescriptor engine(*target_.api, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t handle = engine.get();
    std::int64_t one = 0;
    if (target_.api->cudnnBackendGetAttribute(configurations[i].get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one,
                                              &handle) != CUDNN_STATUS_SUCCESS) {
      continue;
    }
    if (allowed(engine, math)) result.push_back(read_configuration(configurations[i], engine));
  }
  return result;
}

Result<std::vector<EngineConfiguration>> CudnnGraph::engines(Math math) const {
  std::vector<EngineConfiguration> result;
  std::string refusal = "no engine keeps the precision that was asked for";
  const auto add = [&](const EngineConfiguration& configuration) {
    if (std::find(result.begin(), result.end(), configuration) == result.end()) {
      result.push_back(configuration);
    }
  };
  for (cudnnBackendHeurMode_t mode :
       {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    try {
      for (const EngineConfiguration& configuration : heuristic(mode, math)) add(configuration);
    } catch (const std::runtime_error& error) {
      refusal = error.what();
    }
  }
  // What no heuristic named is still on offer, with its default knobs. Most of it does not take the
  // graph, which finalizing the engine finds out.
  const std::int64_t count = graph_->integer(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
  for (std::int64_t index = 0; index < count; ++index) {
    const auto same_engine = [&](const EngineConfiguration& known) {
      return known.engine == index;
    };
    if (std::any_of(result.begin(), result.end(), same_engine)) continue;
    try {
      const BackendDescriptor engine = engine_descriptor(index);
      if (allowed(engine, math)) add({.engine = index, .knobs = {}});
    } catch (const std::runtime_error& error) {
      if (result.empty()) refusal = error.what();
    }
  }
  if (result.empty()) return Error{refusal};
  return result;
}

BuiltPlan CudnnGraph::build_plan(const EngineConfiguration& engine) const {
  BackendDescriptor configuration(*target_.api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  BackendDescriptor descriptor = engine_descriptor(engine.engine);
  configuration.set_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, descriptor);
  std::vector<BackendDescriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const auto& [type, value] : engine.knobs) {
    BackendDescriptor& knob =
        knobs.emplace_back(*target_.api, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    const auto knob_type = static_cast<cudnnBackendKnobType_t>(type);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob_type);
    knob.set_integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
    knob.finalize("knob");
    handles.push_back(knob.get());
  }
  if (!handles.empty()) {
    configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                      static_cast<std::int64_t>(handles.size()), handles.data());
  }
  configuration.finalize("engine configuration");

  BackendDescriptor plan(*target_.api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target_.cudnn) {
    const cudnnHandle_t handle = target_.cudnn->handle();
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  }
  if (target_.device_properties) {
    plan.set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target_.device_properties);
  }
  plan.set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  plan.finalize("plan");
  return {graph_, std::move(descriptor), std::move(knobs), std::move(configuration),
          std::move(plan)};
}

Result<Ok> CudnnGraph::try_plan(const EngineConfiguration& engine) const {
  return guarded([&]() -> Result<Ok> {
    (void)build_plan(engine);
    return Ok{};
  });
}

std::shared_ptr<const BuiltPlan> CudnnGraph::kept_plan(const EngineConfiguration& engine,
                                                       const std::string& name) const {
  auto& plans = target_.cudnn->plans();
  const std::string whole = name + " | " + engine.name();
  if (const auto found = plans.find(whole); found != plans.end()) return found->second;
  const auto built = std::make_shared<const BuiltPlan>(build_plan(engine));
  if (plans.size() >= most_kept_plans) plans.clear();
  plans.emplace(whole, built);
  return built;
}

Result<std::unique_ptr<Runnable>> CudnnGraph::plan(const EngineConfiguration& engine,
                                                   const std::string& name) const {
  return guarded([&]() -> Result<std::unique_ptr<Runnable>> {
    std::shared_ptr<const BuiltPlan> built = kept_plan(engine, name);
    const std::int64_t workspace_bytes =
        built->plan.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    DeviceBuffer workspace;
    if (workspace_bytes > 0) workspace = DeviceBuffer(workspace_bytes);

    std::vector<std::int64_t> ids;
    std::vector<void*> pointers;
    std::vector<std::shared_ptr<const void>> owned;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Value& value = values_[i];
      if (!value.in_memory) continue;
      ids.push_back(static_cast<std::int64_t>(i) + 1);
      pointers.push_back(value.pointer);
      if (value.owned) owned.push_back(value.owned);
    }
    void* const workspace_pointer = reinterpret_cast<void*>(workspace.get());
    BackendDescriptor variant(*target_.api, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    variant.set_integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
    variant.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                static_cast<std::int64_t>(pointers.size()), pointers.data());
    variant.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace_pointer);
    variant.finalize("variant pack");
    return std::unique_ptr<Runnable>(
        std::make_unique<CudnnPlan>(target_.cudnn, std::move(built), std::move(variant),
                                    std::move(workspace), std::move(owned), engine.name()));
  });
}

Result<std::vector<boost::json::object>> engine_offers(const CudnnGraph& graph, Math math,
                                                       const std::string& variant) {
  Result<std::vector<EngineConfiguration>> engines = graph.engines(math);
  if (!engines) return engines.error();
  std::vector<boost::json::object> offers;
  for (const EngineConfiguration& engine : *engines) {
    boost::json::object offer = engine.to_json();
    offer["variant"] = variant;
    offers.push_back(std::move(offer));
  }
  return offers;
}

}  // namespace rekernel

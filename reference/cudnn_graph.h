#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/problem.h"
#include "reference/cudnn.h"

namespace rekernel {

/// An owning descriptor of cuDNN's graph interface. Attribute failures throw std::runtime_error:
/// callers turn them into a Result at the boundary (`guarded`).
class BackendDescriptor {
 public:
  BackendDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type);
  /// Takes over a descriptor.
  BackendDescriptor(const CudnnApi& api, cudnnBackendDescriptor_t descriptor)
      : api_(&api), descriptor_(descriptor) {}
  BackendDescriptor(BackendDescriptor&& other) noexcept
      : api_(other.api_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  BackendDescriptor& operator=(BackendDescriptor&& other) noexcept;
  ~BackendDescriptor();

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set_integers(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values);
  void set_integer(cudnnBackendAttributeName_t name, std::int64_t value);
  void set_type(cudnnBackendAttributeName_t name, cudnnDataType_t type);
  void set_descriptor(cudnnBackendAttributeName_t name, const BackendDescriptor& value);
  void finalize(const char* what);

  std::int64_t integer(cudnnBackendAttributeName_t name) const;
  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  const CudnnApi* api_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// Where plans are made for: a handle on this machine's GPU or, to ask the library without a GPU,
/// the properties of one (a finalized CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).
struct CudnnTarget {
  const CudnnApi* api = nullptr;
  std::shared_ptr<const Cudnn> cudnn;
  std::shared_ptr<const BackendDescriptor> device_properties;
};

/// An engine and its knobs: a choice that is worth remembering.
struct EngineConfiguration {
  std::int64_t engine = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>>
      knobs;  ///< (cudnnBackendKnobType_t, value), sorted

  bool operator==(const EngineConfiguration&) const = default;
  /// "eng46_k24=1_k2=10", the form in which the library's own tools name engines.
  std::string name() const;
  boost::json::object to_json() const;
  static Result<EngineConfiguration> from_json(const boost::json::value& value);
};

/// A finalized plan and the descriptors that it was made from, which it may still refer to.
struct BuiltPlan {
  std::shared_ptr<const BackendDescriptor> graph;
  BackendDescriptor engine;
  std::vector<BackendDescriptor> knobs;
  BackendDescriptor configuration;
  BackendDescriptor plan;
};

/// Which engines count, by the numerical notes that the library attaches to them.
enum class Math {
  fp32,  ///< no tensor cores (TF32) and no down-converted inputs
  tf32,  ///< tensor cores, but no inputs converted below TF32
  any,   ///< everything: the graph's own types decide
};

/// A cuDNN operation graph over bound buffers. Add tensors and operations, then `seal`; after that,
/// ask for the engines and make plans. Adding and sealing throw std::runtime_error.
class CudnnGraph {
 public:
  using Tensor = std::size_t;

  explicit CudnnGraph(CudnnTarget target);

  /// A tensor in device memory. `strides` in elements; empty: packed, row-major.
  Tensor buffer(cudnnDataType_t type, const std::vector<std::int64_t>& extents, CUdeviceptr pointer,
                std::vector<std::int64_t> strides = {});
  /// A tensor in a buffer of its own, packed, which the plans keep.
  Tensor constant(cudnnDataType_t type, const std::vector<std::int64_t>& extents,
                  std::shared_ptr<const DeviceBuffer> buffer);
  /// A number that the plan reads from the host.
  Tensor scalar(float value, std::size_t rank);
  /// A tensor that never reaches memory.
  Tensor intermediate(cudnnDataType_t type, const std::vector<std::int64_t>& extents);

  /// How windows lie on images, a number for each of their dimensions.
  struct WindowSteps {
    std::vector<std::int64_t> stride, padding, dilation;
  };
  /// Groups follow from the extents: the channels of x over those of the weight.
  void convolution(Tensor x, Tensor weight, Tensor y, const WindowSteps& steps);
  /// The transpose of the convolution that goes from y to x.
  void transposed_convolution(Tensor x, Tensor weight, Tensor y, const WindowSteps& steps);
  void unary(cudnnPointwiseMode_t mode, Tensor x, Tensor y);
  void binary(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y,
              cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  /// y = condition ? x : b
  void select(Tensor x, Tensor b, Tensor condition, Tensor y);
  /// y[…] = the index along `axis`
  void index(std::int64_t axis, Tensor x, Tensor y);
  void reduce(cudnnReduceTensorOp_t operation, Tensor x, Tensor y);
  /// How much of each product of a batch counts, where not all does: C's rows, its columns, and
  /// what is summed over. Each in device memory: i32 (batch, 1, 1, 1).
  struct Lengths {
    std::optional<Tensor> rows, columns, inner;
  };
  void matmul(Tensor a, Tensor b, Tensor c, const Lengths& lengths = {});
  /// Layer normalisation over the extents in which `scale` is not 1. `mean` and `inverse_deviation`
  /// are written in the training phase only.
  void layer_norm(cudnnBackendNormFwdPhase_t phase, Tensor x, Tensor scale, Tensor bias,
                  Tensor epsilon, Tensor y, Tensor mean, Tensor inverse_deviation);

  void seal();

  /// Engine configurations in the library's order of preference: its two heuristics, its fall-back
  /// list, then every engine with its default knobs. The error is the library's refusal.
  Result<std::vector<EngineConfiguration>> engines(Math math) const;

  /// A plan with its workspace, ready to run. The graph may go away. The handle keeps what was
  /// built under `name`, which says all of the graph but its buffers: engines that are compiled at
  /// run time take 0.3 s.
  Result<std::unique_ptr<Runnable>> plan(const EngineConfiguration& engine,
                                         const std::string& name) const;

  /// Whether a plan can be built at all; allocates nothing on the device.
  Result<Ok> try_plan(const EngineConfiguration& engine) const;

 private:
  struct Value {
    BackendDescriptor descriptor;
    void* pointer = nullptr;            ///< on the device; a scalar's on the host
    std::shared_ptr<const void> owned;  ///< what it points into, unless the caller owns that
    bool in_memory = false;
  };

  Tensor add_tensor(cudnnDataType_t type, const std::vector<std::int64_t>& extents,
                    std::vector<std::int64_t> strides, bool is_virtual, bool by_value,
                    std::int64_t alignment);
  BackendDescriptor& convolution_shape(const WindowSteps& steps);
  BackendDescriptor& add_operation(cudnnBackendDescriptorType_t type);
  BackendDescriptor& pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute,
                               std::int64_t axis = -1);
  BackendDescriptor engine_descriptor(std::int64_t index) const;
  bool allowed(const BackendDescriptor& engine, Math math) const;
  std::vector<EngineConfiguration> heuristic(cudnnBackendHeurMode_t mode, Math math) const;
  EngineConfiguration read_configuration(const BackendDescriptor& configuration,
                                         const BackendDescriptor& engine) const;
  BuiltPlan build_plan(const EngineConfiguration& engine) const;
  std::shared_ptr<const BuiltPlan> kept_plan(const EngineConfiguration& engine,
                                             const std::string& name) const;

  CudnnTarget target_;
  std::vector<Value> values_;
  std::deque<BackendDescriptor> parts_;  ///< descriptors that operations refer to
  std::deque<BackendDescriptor> operations_;
  std::shared_ptr<BackendDescriptor> graph_;
};

/// A graph's engines as choices to remember: {"variant": …, "engine": …, "knobs": […]}.
Result<std::vector<boost::json::object>> engine_offers(const CudnnGraph& graph, Math math,
                                                       const std::string& variant);

/// Turns what a graph throws into an error.
template <class Function>
auto guarded(const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::runtime_error& error) {
    return Error{error.what()};
  }
}

}  // namespace rekernel

#include "reference/cudnn.h"

#include <limits>
#include <stdexcept>

#include "harness/compile/compile.h"
#include "harness/gpu/library.h"

namespace rekernel {

namespace {

Result<CudnnApi> resolve_cudnn() {
  Result<DynamicLibrary> library = DynamicLibrary::open({"libcudnn.so.9"});
  if (!library) return library.error();
  // cuDNN opens NVRTC by its bare name for engines that it compiles at run time. Where NVRTC stands
  // in a folder that only this program knows, that works only if it is in memory already. A failure
  // costs those engines alone.
  (void)Compiler::load().ok();

  CudnnApi api;
  std::string missing;
#define REKERNEL_LOAD(name) \
  if (!library->load(#name, api.name) && missing.empty()) missing = #name;
  REKERNEL_CUDNN_FUNCTIONS(REKERNEL_LOAD)
#undef REKERNEL_LOAD
  if (!missing.empty()) return Error{"cuDNN (" + library->path() + ") has no " + missing};
  return api;
}

}  // namespace

Result<const CudnnApi*> load_cudnn() {
  static const Result<CudnnApi> api = resolve_cudnn();
  if (!api) return api.error();
  return &api.value();
}

std::string CudnnApi::version() const {
  const std::size_t version = cudnnGetVersion();
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string CudnnApi::describe(cudnnStatus_t status) const {
  char message[512] = {};
  cudnnGetLastErrorString(message, sizeof message);
  std::string text = cudnnGetErrorString(status);
  if (message[0] != '\0') text += std::string(": ") + message;
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

Result<std::shared_ptr<const Cudnn>> Cudnn::open(const Device& device) {
  std::shared_ptr<void>& kept = device.kept("cuDNN");
  if (kept) return std::static_pointer_cast<const Cudnn>(kept);
  Result<const CudnnApi*> api = load_cudnn();
  if (!api) return api.error();
  cudnnHandle_t handle = nullptr;
  if (cudnnStatus_t status = (*api)->cudnnCreate(&handle); status != CUDNN_STATUS_SUCCESS) {
    return Error{"cudnnCreate: " + (*api)->describe(status)};
  }
  const std::shared_ptr<Cudnn> cudnn(new Cudnn(**api, handle));
  kept = cudnn;
  return std::shared_ptr<const Cudnn>(cudnn);
}

Cudnn::~Cudnn() {
  plans_.clear();
  api_.cudnnDestroy(handle_);
}

void Cudnn::set_stream(CUstream stream) const {
  check(api_.cudnnSetStream(handle_, stream), "cudnnSetStream");
}

void Cudnn::check(cudnnStatus_t status, const char* what) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": " + api_.describe(status));
}

CudnnTensor::CudnnTensor(const Cudnn& cudnn, cudnnDataType_t type,
                         const std::vector<std::int64_t>& extents)
    : descriptor_(nullptr, cudnn.api().cudnnDestroyTensorDescriptor) {
  cudnnTensorDescriptor_t descriptor = nullptr;
  cudnn.check(cudnn.api().cudnnCreateTensorDescriptor(&descriptor), "cudnnCreateTensorDescriptor");
  descriptor_.reset(descriptor);
  std::vector<int> sizes, strides;
  std::int64_t elements = 1;
  for (std::size_t i = extents.size(); i-- > 0; elements *= extents[i]) {
    sizes.insert(sizes.begin(), as_int(extents[i]));
    strides.insert(strides.begin(), as_int(elements));
  }
  cudnn.check(cudnn.api().cudnnSetTensorNdDescriptor(
                  descriptor, type, static_cast<int>(extents.size()), sizes.data(), strides.data()),
              "cudnnSetTensorNdDescriptor");
}

int as_int(std::int64_t value) {
  if (value > std::numeric_limits<int>::max()) {
    throw std::runtime_error(std::to_string(value) + " is more than the library's int holds");
  }
  return static_cast<int>(value);
}

cudnnDataType_t cudnn_type(DType type) {
  switch (type) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::f16:
      return CUDNN_DATA_HALF;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      throw std::runtime_error(std::string("no cuDNN type for ") + to_string(type));
  }
}

std::string Sequence::details() const {
  std::string text = name_ + ": ";
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (i > 0) text += ", then ";
    text += steps_[i]->details();
  }
  return text;
}

}  // namespace rekernel

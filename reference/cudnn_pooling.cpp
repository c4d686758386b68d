#include "reference/cudnn_pooling.h"

#include "reference/library_references.h"

namespace rekernel {

namespace {

Extents with_images(std::int64_t batch, std::int64_t channels, const Extents& image) {
  Extents extents = {batch, channels};
  extents.insert(extents.end(), image.begin(), image.end());
  return extents;
}

std::vector<int> as_ints(const Extents& extents) {
  std::vector<int> ints;
  for (std::int64_t extent : extents) ints.push_back(as_int(extent));
  return ints;
}

}  // namespace

std::unique_ptr<Runnable> pooling_call(const std::shared_ptr<const Cudnn>& cudnn,
                                       const Pooling& asked, CUdeviceptr x, CUdeviceptr y) {
  const Pooling pooling = asked.as_images();
  const CudnnApi& api = cudnn->api();
  cudnnPoolingDescriptor_t raw = nullptr;
  cudnn->check(api.cudnnCreatePoolingDescriptor(&raw), "cudnnCreatePoolingDescriptor");
  const auto descriptor = owned(raw, api.cudnnDestroyPoolingDescriptor);
  cudnn->check(
      api.cudnnSetPoolingNdDescriptor(
          raw, pooling.average ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING : CUDNN_POOLING_MAX,
          CUDNN_PROPAGATE_NAN, static_cast<int>(pooling.in.size()),
          as_ints(pooling.windows.window).data(), as_ints(pooling.windows.padding).data(),
          as_ints(pooling.windows.stride).data()),
      "cudnnSetPoolingNdDescriptor");
  const auto from = std::make_shared<CudnnTensor>(
      *cudnn, cudnn_type(pooling.type), with_images(pooling.batch, pooling.channels, pooling.in));
  const auto to = std::make_shared<CudnnTensor>(
      *cudnn, cudnn_type(pooling.type), with_images(pooling.batch, pooling.channels, pooling.out));
  return std::make_unique<CudnnCall>("cudnnPoolingForward", [=](CUstream stream) {
    const float one = 1;
    const float zero = 0;
    cudnn->set_stream(stream);
    cudnn->check(cudnn->api().cudnnPoolingForward(cudnn->handle(), descriptor.get(), &one,
                                                  from->get(), reinterpret_cast<const void*>(x),
                                                  &zero, to->get(), reinterpret_cast<void*>(y)),
                 "cudnnPoolingForward");
  });
}

MadeReference make_library_reference(const Pooling& pooling, const LibraryRequest& request) {
  Result<std::shared_ptr<const Cudnn>> cudnn = Cudnn::open(request.device);
  if (!cudnn) return cudnn.error();
  return pooling_call(*cudnn, pooling, request.at(pooling.x), request.at(pooling.y));
}

}  // namespace rekernel

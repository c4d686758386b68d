#include "harness/capture/driver_calls.h"

#include <algorithm>
#include <initializer_list>

namespace rekernel {

namespace {

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

}  // namespace

std::string_view plain_name(std::string_view name) {
  for (const std::string_view ending : {"_ptsz", "_ptds", "_v2", "_v3", "_v4"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return name;
}

bool leaves_no_trace(std::string_view name) {
  return begins_with_any(name, {"cuCtxGet",
                                "cuCtxResetPersistingL2Cache",
                                "cuCtxSetCacheConfig",
                                "cuCtxSetCurrent",
                                "cuCtxPushCurrent",
                                "cuCtxPopCurrent",
                                "cuCtxSynchronize",
                                "cuDevicePrimaryCtx",
                                "cuDeviceCanAccessPeer",
                                "cuDeviceComputeCapability",
                                "cuDeviceGet",
                                "cuDeviceTotalMem",
                                "cuDriverGet",
                                "cuEventCreate",
                                "cuEventDestroy",
                                "cuEventElapsedTime",
                                "cuEventQuery",
                                "cuEventRecord",
                                "cuEventSynchronize",
                                "cuFuncGet",
                                "cuFuncIsLoaded",
                                "cuFuncLoad",
                                "cuFuncSetAttribute",
                                "cuFuncSetCacheConfig",
                                "cuFuncSetSharedMemConfig",
                                "cuGetError",
                                "cuGetExportTable",
                                "cuGetProcAddress",
                                "cuInit",
                                "cuKernelGet",
                                "cuKernelSetAttribute",
                                "cuKernelSetCacheConfig",
                                "cuLibraryGet",
                                "cuLibraryLoadData",
                                "cuMemAddress",
                                "cuMemAllocAsync",
                                "cuMemAllocFromPool",
                                "cuMemAllocPitch",
                                "cuMemCreate",
                                "cuMemFree",
                                "cuMemGet",
                                "cuMemMap",
                                "cuMemPool",
                                "cuMemRelease",
                                "cuMemRetain",
                                "cuMemSetAccess",
                                "cuMemUnmap",
                                "cuModuleGet",
                                "cuModuleLoad",
                                "cuModuleEnumerateFunctions",
                                "cuOccupancy",
                                "cuPointerGet",
                                "cuStreamCreate",
                                "cuStreamDestroy",
                                "cuStreamGet",
                                "cuStreamIsCapturing",
                                "cuStreamQuery",
                                "cuStreamSynchronize",
                                "cuStreamWaitEvent",
                                "cuTensorMap",
                                "cuThreadExchangeStreamCaptureMode"}) ||
         name == "cuMemAlloc";
}

std::string reason_against(std::string_view name) {
  if (begins_with_any(name, {"cuMemcpyDtoH", "cuMemcpyAtoH"})) {
    return "copies from the device to the host inside of the call: what it does next may depend on "
           "results";
  }
  if (begins_with_any(name, {"cuMemcpyHtoD", "cuMemcpyHtoA"})) {
    return "copies from the host to the device inside of the call: part of the work is the host's";
  }
  if (begins_with_any(name, {"cuLaunchHostFunc", "cuStreamAddCallback"})) {
    return "runs host code in the stream";
  }
  if (begins_with_any(name, {"cuStreamBeginCapture", "cuGraphInstantiate", "cuGraphExec"})) {
    return "makes or changes a graph inside of the call; do that while it warms up";
  }
  if (begins_with_any(name, {"cuMemAllocManaged", "cuMemPrefetch", "cuMemAdvise", "cuMemHost",
                             "cuMemAllocHost"})) {
    return "uses pinned or managed memory";
  }
  if (begins_with_any(name, {"cuMemcpyPeer", "cuMemcpy3DPeer"})) return "uses another device";
  return "is not known to leave the work on the device as it is";
}

}  // namespace rekernel

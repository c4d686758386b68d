// How NVML is read, against a stand-in for it. A program of its own, since
// a library of that name is loaded once a process.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <numeric>

#include "fake_nvml.h"
#include "harness/gpu/identity.h"
#include "harness/gpu/nvml.h"

namespace rekernel {
namespace {

using Kind = GpuContext::Kind;

class NvmlContexts : public ::testing::Test {
 protected:
  void SetUp() override {
    // Whoever asks for libnvidia-ml.so.1 afterwards gets this one.
    void* library = ::dlopen(REKERNEL_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    const auto get = reinterpret_cast<FakeNvmlLists* (*)()>(::dlsym(library, "fake_nvml_lists"));
    ASSERT_NE(get, nullptr);
    lists = get();
    *lists = {};
    Result<GpuMonitor> opened = GpuMonitor::open("0123456789abcdef0123456789abcdef");
    ASSERT_TRUE(opened) << opened.error().message;
    monitor = *opened;
  }

  FakeNvmlLists* lists = nullptr;
  GpuMonitor monitor;
};

TEST_F(NvmlContexts, AreReadInEveryFormThatDriversHave) {
  for (const std::size_t size : {16, 24, 32}) {
    lists->compute = {0, size, {{11, 1000}, {12, ~0ull}, {13, 0}}};
    lists->mps_clients = {0, size, {{14, 2000}}};
    lists->graphics = {0, size, {{15, 3000}}};
    const Result<std::vector<GpuContext>> found = monitor.contexts();
    ASSERT_TRUE(found) << size << ": " << found.error().message;
    ASSERT_EQ(found->size(), 5u) << size;
    const int pids[] = {11, 12, 13, 14, 15};
    const std::optional<std::int64_t> memory[] = {1000, std::nullopt, 0, 2000, 3000};
    const Kind kinds[] = {Kind::compute, Kind::compute, Kind::compute, Kind::mps_client,
                          Kind::graphics};
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ((*found)[i].process, pids[i]) << size;
      EXPECT_EQ((*found)[i].memory_bytes, memory[i]) << size;
      EXPECT_EQ((*found)[i].kind, kinds[i]) << size;
    }
  }
}

TEST_F(NvmlContexts, MayBeMoreThanThereWasRoomFor) {
  lists->compute.processes.resize(1000);
  for (unsigned i = 0; i < 1000; ++i) lists->compute.processes[i] = {i + 1, 7};
  const Result<std::vector<GpuContext>> found = monitor.contexts();
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1000u);
  EXPECT_EQ(found->back().process, 1000);
}

TEST_F(NvmlContexts, MayBeNone) {
  const Result<std::vector<GpuContext>> found = monitor.contexts();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->empty());
}

TEST_F(NvmlContexts, AreAnErrorInNvmlsWordsIfComputeIsNotListed) {
  lists->compute.status = 3;
  const Result<std::vector<GpuContext>> found = monitor.contexts();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "NVML does not list the GPU's processes: Not Supported");
}

TEST_F(NvmlContexts, NeedNeitherGraphicsNorMps) {
  lists->compute.processes = {{11, 1}};
  lists->graphics.status = lists->mps_clients.status = 3;
  const Result<std::vector<GpuContext>> found = monitor.contexts();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->size(), 1u);
}

TEST_F(NvmlContexts, AreAnErrorInAnUnknownForm) {
  lists->compute = {0, 40, {{11, 1}, {12, 1}}};
  EXPECT_FALSE(monitor.contexts());
}

TEST_F(NvmlContexts, AreOfTheGpuThatWasAskedFor) {
  EXPECT_FALSE(GpuMonitor::open("ffffffffffffffffffffffffffffffff"));
}

/// With CUDA_VISIBLE_DEVICES as given, null for not set, and GPUs numbered along the bus.
Result<GpuIdentity> identified(const char* visible, int ordinal = 0) {
  number_gpus_by_bus();
  visible ? ::setenv("CUDA_VISIBLE_DEVICES", visible, 1) : ::unsetenv("CUDA_VISIBLE_DEVICES");
  Result<GpuIdentity> gpu = identify_gpu(ordinal);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  return gpu;
}

TEST_F(NvmlContexts, IdentifyAGpuWithoutCudaWhereThatIsSure) {
  for (const char* visible :
       {static_cast<const char*>(nullptr), "0", "GPU-01234567-89ab-cdef-0123-456789abcdef"}) {
    const Result<GpuIdentity> gpu = identified(visible);
    ASSERT_TRUE(gpu) << gpu.error().message;
    EXPECT_EQ(gpu->name, "NVIDIA Test");
    EXPECT_EQ(gpu->uuid, "0123456789abcdef0123456789abcdef");
    EXPECT_EQ(gpu->capability, (ComputeCapability{9, 0}));
    EXPECT_EQ(gpu->visible, "GPU-01234567-89ab-cdef-0123-456789abcdef");
    EXPECT_EQ(gpu->file, "/dev/nvidia5");
  }
  lists->gpus = 2;
  EXPECT_TRUE(identified("3,GPU-01234567-89ab-cdef-0123-456789abcdef", 1));
  EXPECT_TRUE(nvml_identity(1u));
  EXPECT_FALSE(nvml_identity(2u));
  lists->divided = true;
  EXPECT_FALSE(nvml_identity(0u));
  EXPECT_FALSE(nvml_identity("GPU-01234567-89ab-cdef-0123-456789abcdef"));
  lists->divided = false;
  EXPECT_FALSE(nvml_identity("GPU-00000000-89ab-cdef-0123-456789abcdef"));
}

TEST_F(NvmlContexts, AreNumberedAsCudaNumbersThem) {
  lists->gpus = 3;
  number_gpus_by_bus();
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(gpus_known_to_nvml()->size(), 3u);
  ::setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
  EXPECT_EQ(gpus_known_to_nvml()->size(), 2u);
  ::setenv("CUDA_VISIBLE_DEVICES", "0,MIG-01", 1);
  EXPECT_FALSE(gpus_known_to_nvml());
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_FALSE(gpus_known_to_nvml());
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  // A user's own order is CUDA's secret.
  ::setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST", 1);
  number_gpus_by_bus();
  EXPECT_FALSE(gpus_known_to_nvml());
  ::unsetenv("CUDA_DEVICE_ORDER");
}

}  // namespace
}  // namespace rekernel

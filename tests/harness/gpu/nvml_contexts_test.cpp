// How NVML's lists of processes are read, against a stand-in for NVML. A program of its own, since
// a library of that name is loaded once a process.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <numeric>

#include "fake_nvml.h"
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

}  // namespace
}  // namespace rekernel

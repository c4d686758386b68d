#include "reference/cudnn_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/problems/catalog.h"
#include "reference/shapes.h"

namespace rekernel {
namespace {

/// What cuDNN wants to know of a GPU that is not there (here an H200).
constexpr char h200[] = R"({
  "deviceName": "NVIDIA H200", "deviceVer": 900, "smVersion": 900, "multiProcessorCount": 132,
  "driverVer": 13000, "totalGlobalMem": 150000000000, "maxSharedMemoryPerBlockOptin": 232448,
  "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024, "l2CacheSize": 62914560,
  "warpSize": 32, "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "maxCtasPerSM": 32, "smClockRateKHz": 1980000,
  "memClockRateKHz": 3201000, "maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64], "cudaDeviceId": 0, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1})";

/// Asks the library itself, for a GPU that need not be there.
class CudnnGraphOnPaper : public testing::Test {
 protected:
  void SetUp() override {
    const auto api = load_cudnn();
    if (!api) GTEST_SKIP() << api.error().message;
    target_.api = *api;
    try {
      auto properties =
          std::make_shared<BackendDescriptor>(**api, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
      properties->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, sizeof h200 - 1,
                      h200);
      properties->finalize("device properties");
      target_.device_properties = std::move(properties);
    } catch (const std::runtime_error& error) {
      GTEST_SKIP() << "this cuDNN describes devices otherwise: " << error.what();
    }
  }

  CudnnGraph convolution() const {
    CudnnGraph graph(target_);
    const auto x = graph.buffer(CUDNN_DATA_FLOAT, {100, 3, 224, 224}, 0);
    const auto w = graph.buffer(CUDNN_DATA_FLOAT, {96, 3, 11, 11}, 0);
    const auto y = graph.buffer(CUDNN_DATA_FLOAT, {100, 96, 55, 55}, 0);
    graph.convolution(x, w, y, {{4, 4}, {2, 2}, {1, 1}});
    graph.seal();
    return graph;
  }

  CudnnTarget target_;
};

TEST_F(CudnnGraphOnPaper, Fp32LeavesEnginesOfTensorCoresOut) {
  const CudnnGraph graph = convolution();
  const auto fp32 = graph.engines(Math::fp32);
  const auto tf32 = graph.engines(Math::tf32);
  ASSERT_TRUE(fp32) << fp32.error().message;
  ASSERT_TRUE(tf32) << tf32.error().message;
  EXPECT_FALSE(fp32->empty());
  EXPECT_LT(fp32->size(), tf32->size());
  for (const EngineConfiguration& engine : *fp32) {
    EXPECT_NE(std::find(tf32->begin(), tf32->end(), engine), tf32->end()) << engine.name();
  }
}

TEST_F(CudnnGraphOnPaper, NoConfigurationIsOfferedTwice) {
  const auto engines = convolution().engines(Math::tf32);
  ASSERT_TRUE(engines) << engines.error().message;
  for (const EngineConfiguration& engine : *engines) {
    EXPECT_EQ(std::count(engines->begin(), engines->end(), engine), 1) << engine.name();
  }
}

TEST_F(CudnnGraphOnPaper, ConfigurationsCanBeMadeIntoPlans) {
  const CudnnGraph graph = convolution();
  const auto engines = graph.engines(Math::fp32);
  ASSERT_TRUE(engines) << engines.error().message;
  EXPECT_TRUE(std::any_of(engines->begin(), engines->end(),
                          [&](const auto& engine) { return graph.try_plan(engine).ok(); }));
}

TEST_F(CudnnGraphOnPaper, TakesTheConvolutionsOfTheCatalog) {
  for (const Problem& problem : catalog()) {
    for (const LibraryShape& shape : shapes_of(problem)) {
      if (!std::holds_alternative<Convolution>(shape)) continue;
      const Convolution conv = std::get<Convolution>(shape).as_images();
      CudnnGraph graph(target_);
      const auto x = graph.buffer(CUDNN_DATA_FLOAT, conv.x_extents(), 0);
      const auto w = graph.buffer(CUDNN_DATA_FLOAT, conv.weight_extents(), 0);
      const auto y = graph.buffer(CUDNN_DATA_FLOAT, conv.convolved_extents(), 0);
      const CudnnGraph::WindowSteps steps{conv.windows.stride, conv.windows.padding, conv.dilation};
      if (conv.transposed) {
        graph.transposed_convolution(x, w, y, steps);
      } else {
        graph.convolution(x, w, y, steps);
      }
      graph.seal();
      for (const Math math : {Math::fp32, Math::tf32}) {
        const auto engines = graph.engines(math);
        ASSERT_TRUE(engines) << problem.id << ": " << engines.error().message;
        EXPECT_TRUE(std::any_of(engines->begin(), engines->end(), [&](const auto& engine) {
          return graph.try_plan(engine).ok();
        })) << problem.id;
      }
    }
  }
}

TEST_F(CudnnGraphOnPaper, ImpossiblePlansAreErrors) {
  EXPECT_FALSE(convolution().try_plan({.engine = 100000, .knobs = {}}));
  EXPECT_FALSE(convolution().try_plan({.engine = 0, .knobs = {{43, 12345}}}));
}

TEST_F(CudnnGraphOnPaper, ImpossibleGraphsThrow) {
  CudnnGraph graph(target_);
  const auto x = graph.buffer(CUDNN_DATA_FLOAT, {1, 3, 8, 8}, 0);
  const auto w = graph.buffer(CUDNN_DATA_FLOAT, {1, 5, 3, 3}, 0);  // 5 channels on 3
  const auto y = graph.buffer(CUDNN_DATA_FLOAT, {1, 1, 6, 6}, 0);
  EXPECT_THROW(
      {
        graph.convolution(x, w, y, {{1, 1}, {0, 0}, {1, 1}});
        graph.seal();
      },
      std::runtime_error);
}

}  // namespace
}  // namespace rekernel

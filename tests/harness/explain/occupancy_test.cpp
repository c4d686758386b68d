#include "harness/explain/occupancy.h"

#include <gtest/gtest.h>
#if __has_include(<cuda_occupancy.h>)
// GCC does not see that a switch of the vendor's has all cases.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <cuda_occupancy.h>
#pragma GCC diagnostic pop
#define HAS_CALCULATOR 1
#endif

#include "harness/candidate/arch.h"

namespace rekernel {
namespace {

using Limits = std::vector<std::string>;

Occupancy on(ComputeCapability chip, std::int64_t threads, int registers, std::int64_t shared) {
  return occupancy({threads, registers, shared}, *chip_limits(chip));
}

// The example of the CUDA C++ best practices guide (section "Occupancy"), for chips with 65536
// registers and 64 warps: blocks of 128 threads with 37 registers give 12 resident blocks (48
// warps, 75%), those of 320 threads 4 (63%).
TEST(Occupancy, IsThatOfTheBestPracticesGuide) {
  const Occupancy small = on({9, 0}, 128, 37, 0);
  EXPECT_EQ(small.blocks, 12);
  EXPECT_EQ(small.warps, 48);
  EXPECT_EQ(small.share(), 0.75);
  EXPECT_EQ(small.limited_by, Limits{"registers"});
  const Occupancy large = on({9, 0}, 320, 37, 0);
  EXPECT_EQ(large.blocks, 4);
  EXPECT_EQ(large.warps, 40);
}

TEST(Occupancy, IsLimitedByWhatRunsOutFirst) {
  EXPECT_EQ(on({9, 0}, 1024, 16, 0).limited_by, Limits{"threads"});
  EXPECT_EQ(on({9, 0}, 32, 16, 0).limited_by, Limits{"blocks"});
  EXPECT_EQ(on({9, 0}, 256, 255, 0).limited_by, Limits{"registers"});
  const Occupancy shared = on({9, 0}, 384, 168, 227 * 1024);
  EXPECT_EQ(shared.blocks, 1);
  EXPECT_EQ(shared.limited_by, (Limits{"registers", "shared memory"}));
}

TEST(Occupancy, OfWhatDoesNotFitIsNone) {
  EXPECT_EQ(on({8, 9}, 256, 32, 99 * 1024).blocks, 1);
  EXPECT_EQ(on({8, 9}, 256, 32, 99 * 1024 + 1).blocks, 0);
  EXPECT_EQ(on({8, 9}, 1024, 65, 0).blocks, 0);
  EXPECT_EQ(on({8, 9}, 1024, 64, 0).blocks, 1);
}

TEST(Occupancy, KnowsEveryArchitectureAndAgreesWithItsTable) {
  for (const Architecture& arch : architectures) {
    const std::optional<ChipLimits> limits = chip_limits(arch.capability);
    ASSERT_TRUE(limits) << arch.name;
    EXPECT_EQ(limits->max_warps * 32, arch.max_threads_per_multiprocessor) << arch.name;
    // An architecture grants the least of all chips that run its code.
    EXPECT_GE(limits->shared_bytes_per_block, arch.max_shared_bytes_per_block) << arch.name;
    if (arch.family_specific) {
      EXPECT_EQ(limits->shared_bytes_per_block, arch.max_shared_bytes_per_block) << arch.name;
    }
  }
  EXPECT_FALSE(chip_limits({7, 0}));
}

TEST(Occupancy, IsThatOfTheVendorsCalculator) {
#ifndef HAS_CALCULATOR
  GTEST_SKIP() << "the CUDA headers here have no cuda_occupancy.h";
#else
  int compared = 0;
  for (const ComputeCapability chip :
       {ComputeCapability{8, 0}, ComputeCapability{8, 6}, ComputeCapability{8, 9},
        ComputeCapability{9, 0}, ComputeCapability{10, 0}, ComputeCapability{12, 0}}) {
    const ChipLimits limits = *chip_limits(chip);
    cudaOccDeviceProp device;
    device.computeMajor = chip.major;
    device.computeMinor = chip.minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = limits.max_warps * 32;
    device.regsPerBlock = device.regsPerMultiprocessor = static_cast<int>(limits.registers);
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 * 1024;
    device.sharedMemPerMultiprocessor = static_cast<std::size_t>(limits.shared_bytes);
    device.sharedMemPerBlockOptin = static_cast<std::size_t>(limits.shared_bytes_per_block);
    device.reservedSharedMemPerBlock = 1024;
    device.numSms = 100;
    for (const int threads : {1, 32, 96, 128, 224, 256, 384, 512, 1000, 1024}) {
      for (const int registers : {16, 24, 32, 37, 40, 63, 64, 96, 128, 168, 255}) {
        for (const int shared : {0, 1, 1024, 20000, 48 * 1024, 99 * 1024, 163 * 1024}) {
          cudaOccFuncAttributes kernel;
          kernel.maxThreadsPerBlock = 1024;
          kernel.numRegs = registers;
          kernel.sharedSizeBytes = 0;
          kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
          kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
          kernel.maxDynamicSharedSizeBytes = static_cast<std::size_t>(shared);
          kernel.numBlockBarriers = 1;
          cudaOccDeviceState state;
          state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
          cudaOccResult result;
          if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads,
                                                      static_cast<std::size_t>(shared)) !=
              CUDA_OCC_SUCCESS) {
            continue;
          }
          EXPECT_EQ(on(chip, threads, registers, shared).blocks,
                    result.activeBlocksPerMultiprocessor)
              << chip.major << "." << chip.minor << ": " << threads << " threads, " << registers
              << " registers, " << shared << " bytes";
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 2000);
#endif
}

}  // namespace
}  // namespace rekernel

#include "harness/explain/launch_use.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

Candidate candidate_with(std::int64_t threads, std::int64_t dynamic_shared_bytes) {
  Candidate candidate;
  candidate.problem = "softmax";
  candidate.name = "mine";
  KernelLaunch launch;
  launch.kernel = "k";
  launch.block = {threads, 1, 1};
  launch.dynamic_shared_bytes = dynamic_shared_bytes;
  candidate.program.steps = {Memset{"w", 0}, launch};
  return candidate;
}

CompileCheck check(const std::string& target, KernelResources kernel) {
  kernel.name = "k";
  return {.candidate = "softmax/mine", .target = target, .resources = {std::move(kernel)}};
}

TEST(LaunchUse, TellsWhatLimitsTheOccupancyOfEachTarget) {
  const std::vector<LaunchUse> uses =
      launch_uses(candidate_with(256, 40000),
                  {check("sm_80", {.registers = 32}), check("sm_89", {.registers = 32})});
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].step, 1u);
  // 167936 and 102400 bytes of shared memory, 41088 a block.
  EXPECT_EQ(uses[0].occupancy->blocks, 4);
  EXPECT_EQ(uses[1].occupancy->blocks, 2);
  EXPECT_EQ(uses[0].occupancy->limited_by, std::vector<std::string>{"shared memory"});
  const std::string text = to_text(launch_table(uses));
  EXPECT_NE(text.find("1 k     sm_89"), std::string::npos) << text;
  EXPECT_NE(text.find("33.3%"), std::string::npos) << text;
}

TEST(LaunchUse, NamesTheLimitsOfEachChipOnce) {
  const CompileCheck ada = check("sm_89", {.registers = 32});
  const std::vector<std::string> lines =
      chip_lines(launch_uses(candidate_with(256, 0), {ada, ada}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            "a multiprocessor of sm_89 has 65536 registers, 102400 bytes of shared memory (a block "
            "at most 101376), 48 warps, 24 blocks");
}

TEST(LaunchUse, TooMuchSharedMemoryIsToldWithLimitAndChip) {
  const std::vector<LaunchUse> uses =
      launch_uses(candidate_with(256, 100000),
                  {check("sm_80", {.registers = 32, .static_shared_bytes = 4096}),
                   check("sm_89", {.registers = 32, .static_shared_bytes = 4096})});
  const std::vector<std::string> refusals = launch_refusals(uses);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0],
            "launches[1] k: 4096 static and 100000 dynamic bytes of shared memory, 104096 bytes "
            "(101.7 KiB); sm_89 grants a block 101376 bytes (99 KiB)");
}

TEST(LaunchUse, TooManyRegistersAreToldWithTheThreads) {
  const std::vector<LaunchUse> uses =
      launch_uses(candidate_with(1024, 0), {check("sm_90a", {.registers = 80})});
  ASSERT_EQ(launch_refusals(uses).size(), 1u);
  EXPECT_EQ(launch_refusals(uses)[0],
            "launches[1] k: 80 registers for each of 1024 threads; a multiprocessor of sm_90a has "
            "65536");
}

TEST(LaunchUse, LocalArraysAreToldOnceForAllTargets) {
  const KernelResources with_stack{.registers = 32, .stack_bytes = 81920};
  const std::vector<std::string> notes = launch_notes(launch_uses(
      candidate_with(256, 0), {check("sm_80", with_stack), check("sm_89", with_stack)}));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("a stack of 81920 bytes a thread"), std::string::npos) << notes[0];
  EXPECT_TRUE(notes[0].ends_with("(sm_80, sm_89)")) << notes[0];
  EXPECT_TRUE(launch_notes(launch_uses(candidate_with(256, 0), {check("sm_80", {.registers = 32})}))
                  .empty());
}

}  // namespace
}  // namespace rekernel

#include "harness/profile/profile.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "harness/base/files.h"
#include "harness/profile/metrics.h"
#include "harness/profile/ncu_pages.h"
#include "harness/profile/source_lines.h"

namespace rekernel {
namespace {

Profile softmax_profile() {
  const std::filesystem::path pages =
      std::filesystem::path(REKERNEL_SOURCE_DIR) / "tests/harness/profile/pages";
  Profile profile{
      "softmax", "two_passes", "", "NVIDIA H200", "Nsight Compute 2024.1.1.0", 2147483648, {}};
  const auto launches = launches_in(*read_file(pages / "raw.csv"));
  for (const LaunchMetrics& launch : *launches) profile.launches.push_back(launch_profile(launch));
  auto instructions = instructions_in(*read_file(pages / "source.csv"));
  (*instructions)[2].line = 2;
  profile.launches[1].hottest = hottest_of(*instructions, 5);
  add_source(profile.launches[1].hottest, "first\n  y[i] = x[i] + sum;\n");
  return profile;
}

TEST(Profile, AddsLaunchesUpByTheirTimes) {
  const Profile profile = softmax_profile();
  EXPECT_EQ(profile.duration_ns(), 900000);
  EXPECT_EQ(profile.dram_bytes(), 3 * 1073741824LL + 2048);
  // A third of the time at 86.4%, two thirds at 90%.
  EXPECT_NEAR(*profile.together(&LaunchProfile::dram_share), 88.8, 1e-9);
  EXPECT_EQ(profile.launches[1].shared_bytes, 8190 + 1024);
  EXPECT_EQ(profile.launches[1].local_accesses, 18);
}

TEST(Profile, LeavesOutWhatWasNotCounted) {
  Profile profile = softmax_profile();
  profile.launches[0].dram_read_bytes.reset();
  profile.launches[0].dram_share.reset();
  EXPECT_FALSE(profile.dram_bytes());
  EXPECT_FALSE(profile.together(&LaunchProfile::dram_share));
  const std::string text = profile_text(profile, 2400);
  EXPECT_EQ(text.find("times the least"), std::string::npos) << text;
  EXPECT_FALSE(to_json(profile).contains("dram_bytes"));
}

TEST(Profile, OrdersStallsAndCountsNoIssueAsOne) {
  const LaunchProfile first = softmax_profile().launches[0];
  ASSERT_EQ(first.stalls.size(), 3u);
  EXPECT_EQ(first.stalls[0].first, "waits for global or local memory");
  EXPECT_NEAR(first.stalls[0].second, 75, 1e-9);
}

TEST(ProfileText, SaysWhatLimitsTheKernel) {
  const std::string text = profile_text(softmax_profile(), 2400);
  for (
      const char* part :
      {"2 launches, 900.0 us, of the peak: DRAM 89%, matrix unit 0%, issue slots 18%, 3.22 GB read "
       "and written in DRAM, 1.50 times the least (2.15 GB).",
       "- launch 2, normalise: 600.0 us, 67% of the time", "40 registers a thread",
       "9.21 KB shared a block", "18 local accesses (spills, arrays)", "no spills",
       "occupancy 70% of 75% possible", "16.0 sectors a load, 16.0 a store, 1200 bank conflicts",
       "stalls: 100% waits for global or local memory",
       "80% at @!P0 FADD R7, R4, R5 (waits for global or local memory), line 2: y[i] = x[i] + sum;",
       "7% at BAR.SYNC.DEFER_BLOCKING 0x0 (waits at a block's barrier)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(ProfileText, FitsWhateverTheProfileHolds) {
  Profile profile = softmax_profile();
  for (int i = 0; i < 40; ++i) profile.launches.push_back(profile.launches[1]);
  for (LaunchProfile& launch : profile.launches) launch.kernel = std::string(200, 'k');
  for (const std::size_t most : {std::size_t{2400}, std::size_t{1000}, std::size_t{100}}) {
    const std::string text = profile_text(profile, most);
    EXPECT_LE(text.size(), most + 3) << text;
    EXPECT_FALSE(text.empty());
  }
  EXPECT_NE(profile_text(profile, 2400).find("shorter launches left out"), std::string::npos);
}

TEST(SourceLines, ComeFromTheSameInstructionAlone) {
  const std::string disassembly =
      "\t.section\t.text.other,\"ax\"\n.text.other:\n\t//## File \"kernel.cu\", line 99\n"
      "        /*0000*/                   MOV R1, c[0x0][0x28] ;\n"
      "\t.section\t.text.normalise,\"ax\"\n.text.normalise:\n"
      "\t//## File \"kernel.cu\", line 4\n"
      "        /*0000*/                   MOV R1, c[0x0][0x28] ;  /* 0x00000a0000017a02 */\n"
      "                                                           /* 0x000fe40000000f00 */\n"
      "\t//## File \"cuda_fp16.hpp\", line 700 inlined at \"kernel.cu\", line 7\n"
      "        /*0010*/                   LDG.E.128 R4, [R2.64] ;\n"
      "\t//## File \"kernel.cu\", line 9\n"
      "        /*0020*/              @!P0 FMUL R7, R4, R5 ;\n";
  std::vector<SampledInstruction> instructions = {{0, "MOV R1, c[0x0][0x28]", 1, "", 0},
                                                  {16, "LDG.E.128 R4, [R2.64]", 1, "", 0},
                                                  {32, "@!P0  FADD R7, R4, R5", 1, "", 0}};
  add_lines(instructions, disassembly, "normalise");
  EXPECT_EQ(instructions[0].line, 4);
  EXPECT_EQ(instructions[1].line, 7);  // that of the call
  EXPECT_EQ(instructions[2].line, 0);  // another instruction
  std::vector<HotInstruction> hottest = {{"NOP", 1.0, "", 12, ""}};
  add_source(hottest, "one line\n");
  EXPECT_EQ(hottest[0].line, 0);
}

}  // namespace
}  // namespace rekernel

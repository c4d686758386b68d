#include "harness/candidate/arch.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rekernel {
namespace {

using Names = std::vector<std::string>;

TEST(Arch, IsFoundByItsNameAlone) {
  EXPECT_EQ(arch_from_string("sm_90a"), Arch("sm_90a"));
  EXPECT_EQ(arch_from_string("sm_90"), std::nullopt);
  EXPECT_EQ(arch_from_string(""), std::nullopt);
  EXPECT_STREQ(to_string(Arch("sm_89")), "sm_89");
  EXPECT_EQ(known_archs(), R"("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")");
}

TEST(Arch, EveryOneHasAMatrixRate) {
  for (const Architecture& row : architectures) {
    EXPECT_TRUE(matrix_operations_per_clock(row.capability)) << row.name;
  }
  EXPECT_EQ(matrix_operations_per_clock({8, 6}), 1024);
  EXPECT_EQ(matrix_operations_per_clock({9, 0}), 4096);
  EXPECT_EQ(matrix_operations_per_clock({7, 0}), std::nullopt);
}

TEST(Arch, RunsOnItsOwnAndNewerDevices) {
  EXPECT_TRUE(runs_on("sm_80", 8, 0));
  EXPECT_FALSE(runs_on("sm_80", 7, 5));
  EXPECT_TRUE(runs_on("sm_80", 12, 0));
  EXPECT_FALSE(runs_on("sm_89", 8, 6));
  EXPECT_TRUE(runs_on("sm_89", 9, 0));
}

TEST(Arch, OfAFamilyRunsOnThatAlone) {
  EXPECT_TRUE(runs_on("sm_90a", 9, 0));
  EXPECT_FALSE(runs_on("sm_90a", 8, 9));
  EXPECT_FALSE(runs_on("sm_90a", 10, 0));
  EXPECT_TRUE(runs_on("sm_100a", 10, 0));
  EXPECT_FALSE(runs_on("sm_100a", 10, 3));
  EXPECT_TRUE(runs_on("sm_103a", 10, 3));
  EXPECT_FALSE(runs_on("sm_103a", 10, 0));
  EXPECT_TRUE(runs_on("sm_120a", 12, 0));
  EXPECT_FALSE(runs_on("sm_120a", 12, 1));
}

TEST(Arch, IsCompiledForEverythingThatRunsIt) {
  EXPECT_EQ(targets_of("sm_80"),
            (Names{"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"}));
  EXPECT_EQ(targets_of("sm_89"), (Names{"sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"}));
  EXPECT_EQ(targets_of("sm_100a"), Names{"sm_100a"});
}

TEST(Arch, OnADeviceAreTheNewerOnesLast) {
  const auto names = [](ComputeCapability device) {
    Names result;
    for (const Arch arch : archs_on(device)) result.emplace_back(to_string(arch));
    return result;
  };
  EXPECT_EQ(names({9, 0}), (Names{"sm_80", "sm_89", "sm_90a"}));
  EXPECT_EQ(names({8, 6}), Names{"sm_80"});
  EXPECT_EQ(names({12, 1}), (Names{"sm_80", "sm_89"}));
  EXPECT_EQ(names({7, 5}), Names{});
}

TEST(Arch, GrantsWhatTheSmallestOfItsDevicesHas) {
  // 227 KB and 99 KB.
  EXPECT_EQ(Arch("sm_80")->max_shared_bytes_per_block, 99 * 1024);
  EXPECT_EQ(Arch("sm_90a")->max_shared_bytes_per_block, 227 * 1024);
  EXPECT_EQ(Arch("sm_120a")->max_shared_bytes_per_block, 99 * 1024);
  EXPECT_FALSE(has_clusters("sm_89"));
  EXPECT_FALSE(has_tensor_maps("sm_89"));
  EXPECT_TRUE(has_clusters("sm_120a"));
  EXPECT_TRUE(has_tensor_maps("sm_120a"));
}

// What the table must hold for the rest to be right, whatever is added to it.
TEST(Architectures, AreNamedAsNvrtcNamesThemAndInOrder) {
  const std::vector<Arch> all = Arch::all();
  for (const Arch arch : all) {
    EXPECT_EQ(capability_of(arch->name), arch->capability) << arch->name;
    EXPECT_EQ(std::string_view(arch->name).ends_with('a'), arch->family_specific) << arch->name;
    EXPECT_EQ(target_for(arch->capability), arch->name);
  }
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](Arch left, Arch right) {
    return left->capability < right->capability;
  }));
}

TEST(Target, IsNativeToTheDevice) {
  EXPECT_EQ(target_for({8, 0}), "sm_80");
  EXPECT_EQ(target_for({8, 6}), "sm_86");
  EXPECT_EQ(target_for({8, 9}), "sm_89");
  EXPECT_EQ(target_for({9, 0}), "sm_90a");
  EXPECT_EQ(target_for({10, 3}), "sm_103a");
  EXPECT_EQ(target_for({12, 1}), "sm_121a");
}

TEST(Target, TellsTheCapability) {
  EXPECT_EQ(capability_of("sm_90a"), (ComputeCapability{9, 0}));
  EXPECT_EQ(capability_of("sm_103a"), (ComputeCapability{10, 3}));
  EXPECT_EQ(capability_of("sm_86"), (ComputeCapability{8, 6}));
  for (const char* other : {"", "sm_", "sm_a", "sm_9", "sm_90f", "compute_90", "sm_90a ", "90",
                            "sm_-90", "sm_99999999999"}) {
    EXPECT_EQ(capability_of(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace rekernel

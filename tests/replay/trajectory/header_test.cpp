#include "replay/trajectory/header.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

TEST(HeaderCheck, NamesAKernelThatAppearsTwiceInOneLine) {
  Header header = testing::small_header();
  header.library = {{"a\nb", "", "", ""}, {"a\nb", "", "", ""}};
  const Result<Ok> checked = check_header(header, "line 1");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, "line 1: library: \"a?b\" appears twice");
}

TEST(HeaderCheck, KnowsTheTargetsOfAllDevicesThatRunSomething) {
  const auto error_of = [](const std::string& target) {
    Header header = testing::small_header();
    header.device.target = target;
    const Result<Header> read = header_from_json(to_json(header), "line 1");
    return read ? std::string("good") : read.error().message;
  };
  for (const char* known : {"sm_80", "sm_86", "sm_90a", "sm_103a", "sm_121a"}) {
    EXPECT_EQ(error_of(known), "good") << known;
  }
  for (const char* unknown : {"sm_75", "sm_90", "sm_80a", "gfx942", ""}) {
    EXPECT_TRUE(error_of(unknown).starts_with("line 1: device.target: expected NVRTC's name"))
        << error_of(unknown);
  }
}

TEST(NewestArch, IsTheLastThatTheDeviceRuns) {
  EXPECT_EQ(newest_arch(*known_device("h200")), "sm_90a");
  EXPECT_EQ(newest_arch(*known_device("l40s")), "sm_89");
  DeviceFacts device;
  device.target = "sm_86";
  EXPECT_EQ(newest_arch(device), "sm_80");
}

TEST(RoundPlanCheck, KnowsWhatARoundCanShow) {
  Header header = testing::small_header();
  header.seeds.resize(2);
  header.library = {{"gemm", "", "", ""}};
  const auto error_of = [&](const std::vector<std::string>& parents,
                            const std::vector<std::string>& kernels = {}) {
    RoundPlan plan;
    plan.round = 3;
    plan.parents = parents;
    plan.bank_kernels = kernels;
    const Result<Ok> checked = check_round_plan(header, plan, "here");
    return checked ? std::string("good") : checked.error().message;
  };
  EXPECT_EQ(error_of({"r2.i1.b1", "r1.i12.b3", "seed.2"}, {"gemm"}), "good");
  for (const char* bad : {"r3.i1.b1", "seed.3", "seed.0", "r2.i1", "r2.i1.b1x", "r-1.i1.b1", ""}) {
    EXPECT_EQ(error_of({bad}), "here: the plan of round 3: parent \"" + std::string(bad) +
                                   "\" is no candidate of an earlier round (\"r4.i2.b1\") and "
                                   "no seed (\"seed.1\")");
  }
  EXPECT_EQ(error_of({}, {"other"}),
            "here: the plan of round 3: bank kernel \"other\" is not in the library");
}

TEST(HeaderEvent, IsReadAsItWasWritten) {
  Header header = testing::small_header();
  header.seeds = {{"{}", "int a;"}};
  header.library = {{"gemm", "a note", "", "int b;"}};
  header.published = {"a page", 1000, {{1, 900, "111.1", "an idea"}}};
  const Result<Header> read = header_from_json(to_json(header), "line 1");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(boost::json::serialize(to_json(*read)), boost::json::serialize(to_json(header)));
}

}  // namespace
}  // namespace rekernel

#include "harness/report/filters.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

BenchRow row(const std::string& problem, const std::string& kernel, Badges badges = {},
             Status status = Status::passed) {
  BenchRow one;
  one.problem = problem;
  one.kernel = kernel;
  one.badges = badges;
  one.status = status;
  return one;
}

PlacedBenches two_devices() {
  PlacedBenches benches(2);
  benches[0].first = "results/h200/bench.json";
  benches[0].second.device_name = "NVIDIA H200";
  benches[0].second.rows = {row("softmax", "fast", {Badge::strict, Badge::robust}),
                            row("conv2d", "fast", {}, Status::wrong_result)};
  benches[1].first = "results/l40s/bench.json";
  benches[1].second.device_name = "NVIDIA L40S";
  benches[1].second.rows = {row("softmax", "slow", {Badge::strict})};
  return benches;
}

Result<Filters> filters_of(const std::vector<std::string>& arguments) {
  Page page;
  add_filters(page.group("Which of them"));
  return chosen_filters(parse_arguments({"list", "problems", arguments}, page));
}

std::string error_of(const std::vector<std::string>& arguments) {
  const Result<Filters> filters = filters_of(arguments);
  return filters ? "" : filters.error().message;
}

TEST(Filters, WithoutAnyEverythingIsTaken) {
  const Result<Filters> filters = filters_of({});
  ASSERT_TRUE(filters);
  EXPECT_TRUE(filters->take_all());
  EXPECT_TRUE(filters->take(row("softmax", "fast")));
  EXPECT_TRUE(filters->take(row("no_such_problem", "fast")));
  PlacedBenches benches = two_devices();
  EXPECT_TRUE(keep_devices(*filters, benches));
  EXPECT_EQ(benches.size(), 2u);
}

TEST(Filters, KindsNarrowAndOfOneKindAnyWillDo) {
  const Filters filters =
      *filters_of({"--problem", "softmax", "--problem", "conv2d", "--kernel", "softmax/fast"});
  EXPECT_TRUE(filters.take(row("softmax", "fast")));
  EXPECT_FALSE(filters.take(row("conv2d", "fast"))) << "another problem's kernel of that name";
  EXPECT_FALSE(filters.take(row("softmax", "slow")));
  EXPECT_FALSE(filters_of({"--group", "published"})->take(row("top_k", "fast")));
  EXPECT_TRUE(filters_of({"--group", "published"})->take(row("softmax", "fast")));
}

TEST(Filters, ARowHasAllBadgesAndOneOfTheStatuses) {
  const Filters badges = *filters_of({"--badge", "strict", "--badge", "robust"});
  EXPECT_TRUE(badges.take(row("softmax", "fast", {Badge::strict, Badge::robust})));
  EXPECT_FALSE(badges.take(row("softmax", "fast", {Badge::strict})));
  const Filters statuses = *filters_of({"--status", "wrong_result", "--status", "crashed"});
  EXPECT_TRUE(statuses.take(row("softmax", "fast", {}, Status::crashed)));
  EXPECT_FALSE(statuses.take(row("softmax", "fast")));
}

TEST(Filters, ADeviceHasANameAndAFolder) {
  for (const char* name : {"h200", "NVIDIA H200"}) {
    PlacedBenches benches = two_devices();
    ASSERT_TRUE(keep_devices(*filters_of({"--on", name}), benches)) << name;
    ASSERT_EQ(benches.size(), 1u);
    EXPECT_EQ(benches[0].second.device_name, "NVIDIA H200");
    EXPECT_EQ(benches[0].second.rows.size(), 2u) << "ranks are found among all rows";
  }
}

TEST(Filters, SayWhatDoesNotExistAndWhatIsExpected) {
  EXPECT_NE(error_of({"--problem", "softmaxx"}).find("softmax"), std::string::npos);
  EXPECT_TRUE(error_of({"--group", "x"}).starts_with("--group x: expected one of published, "));
  EXPECT_EQ(error_of({"--badge", "x"}),
            "--badge x: expected one of strict, robust, deterministic, any_size");
  EXPECT_TRUE(error_of({"--status", "x"}).starts_with("--status x: expected one of passed, "));
  EXPECT_TRUE(error_of({"--status", "x"}).ends_with(", forged_time"));
  PlacedBenches benches = two_devices();
  Result<Ok> kept = keep_devices(*filters_of({"--on", "h300"}), benches);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().message,
            "--on h300: nothing is recorded of it; expected one of h200, l40s");
  kept = keep_devices(*filters_of({"--on", "l40s", "--badge", "robust"}), benches);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().message, "no recorded result fits these filters");
}

}  // namespace
}  // namespace rekernel

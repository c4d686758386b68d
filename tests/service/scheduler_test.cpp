#include "harness/service/scheduler.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

namespace rekernel::service {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Afterwards = Scheduler::Afterwards;

/// A scheduler whose clock stands still unless it is moved.
class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerTest() {
    limits.cores = 2;
    limits.devices = 2;
  }
  Scheduler make() {
    return Scheduler(limits, [this] { return now; });
  }
  Entry entry(Ticket ticket, const std::string& client = "a") {
    Entry one;
    one.ticket = ticket;
    one.client = client;
    return one;
  }
  void add(Scheduler& scheduler, const Entry& one) {
    ASSERT_TRUE(scheduler.reserve(one.client, 1));
    scheduler.add(one);
  }
  /// Brings it to a device, and gives that.
  int bring_to_device(Scheduler& scheduler, Ticket ticket) {
    for (const Ticket one : scheduler.start_compilations()) scheduler.compiled(one, true);
    for (const auto& [one, device] : scheduler.start_judgings()) {
      if (one == ticket) return device;
    }
    return -1;
  }

  SchedulerLimits limits;
  Scheduler::TimePoint now{};
};

TEST_F(SchedulerTest, CompilesOnAllCoresAndJudgesOnAllDevices) {
  Scheduler scheduler = make();
  for (Ticket ticket = 1; ticket <= 5; ++ticket) add(scheduler, entry(ticket));
  EXPECT_EQ(scheduler.start_compilations(), (std::vector<Ticket>{1, 2}));
  EXPECT_TRUE(scheduler.start_compilations().empty());
  scheduler.compiled(1, true);
  scheduler.compiled(2, false);
  EXPECT_EQ(scheduler.stage(2), std::nullopt);
  EXPECT_EQ(scheduler.start_compilations(), (std::vector<Ticket>{3, 4}));
  const auto judgings = scheduler.start_judgings();
  ASSERT_EQ(judgings.size(), 1u);
  EXPECT_EQ(judgings[0].ticket, 1);
  EXPECT_EQ(scheduler.stage(1), Stage::judging);
  scheduler.judged(1);
  EXPECT_EQ(scheduler.queued(), 3u);
}

TEST_F(SchedulerTest, AClientWithManyDoesNotKeepAnotherWaiting) {
  limits.cores = 1;
  Scheduler scheduler = make();
  for (Ticket ticket = 1; ticket <= 100; ++ticket) add(scheduler, entry(ticket, "many"));
  ASSERT_EQ(scheduler.start_compilations(), (std::vector<Ticket>{1}));
  add(scheduler, entry(101, "few"));
  now += seconds(1);
  scheduler.compiled(1, false);
  EXPECT_EQ(scheduler.start_compilations(), (std::vector<Ticket>{101}));
}

TEST_F(SchedulerTest, SharesFollowWeights) {
  limits.cores = 1;
  Scheduler scheduler = make();
  scheduler.set_client("heavy", 3, std::nullopt);
  for (Ticket ticket = 1; ticket <= 400; ++ticket) {
    add(scheduler, entry(ticket, ticket % 2 ? "heavy" : "light"));
  }
  int heavy = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<Ticket> started = scheduler.start_compilations();
    ASSERT_EQ(started.size(), 1u);
    heavy += started[0] % 2 == 1;
    now += seconds(1);
    scheduler.compiled(started[0], false);
  }
  EXPECT_NEAR(heavy, 150, 3);
}

TEST_F(SchedulerTest, PriorityOrdersAClientsOwn) {
  limits.cores = 1;
  Scheduler scheduler = make();
  Entry low = entry(1), high = entry(3);
  low.priority = Priority::low;
  high.priority = Priority::high;
  add(scheduler, low);
  add(scheduler, entry(2));
  add(scheduler, high);
  std::vector<Ticket> order;
  for (int i = 0; i < 3; ++i) {
    order.push_back(scheduler.start_compilations().at(0));
    scheduler.compiled(order.back(), false);
  }
  EXPECT_EQ(order, (std::vector<Ticket>{3, 2, 1}));
}

TEST_F(SchedulerTest, PlacesAreLimitedForAllAndForEach) {
  limits.most_queued = 3;
  limits.most_queued_of_client = 2;
  Scheduler scheduler = make();
  EXPECT_TRUE(scheduler.reserve("a", 2));
  EXPECT_FALSE(scheduler.reserve("a", 1));
  EXPECT_FALSE(scheduler.reserve("b", 2));
  EXPECT_TRUE(scheduler.reserve("b", 1));
  scheduler.give_back("a", 2);
  EXPECT_TRUE(scheduler.reserve("b", 1));
  EXPECT_GE(scheduler.retry_after(), seconds(1));
}

TEST_F(SchedulerTest, AFailedDeviceRestsAndAnotherTriesAgain) {
  Scheduler scheduler = make();
  add(scheduler, entry(1));
  const int first = bring_to_device(scheduler, 1);
  ASSERT_GE(first, 0);
  EXPECT_EQ(scheduler.failed(1, false), Afterwards::again);
  EXPECT_EQ(scheduler.usable_devices(), 1u);
  const auto judgings = scheduler.start_judgings();
  ASSERT_EQ(judgings.size(), 1u);
  EXPECT_NE(judgings[0].device, first);
  EXPECT_TRUE(scheduler.devices_to_ask().empty());
  now += limits.first_rest;
  EXPECT_EQ(scheduler.devices_to_ask(), (std::vector<int>{first}));
  EXPECT_TRUE(scheduler.devices_to_ask().empty());
  scheduler.answered(first, false);
  now += limits.first_rest;
  EXPECT_TRUE(scheduler.devices_to_ask().empty()) << "it rests longer each time";
  now += limits.first_rest;
  EXPECT_EQ(scheduler.devices_to_ask(), (std::vector<int>{first}));
  scheduler.answered(first, true);
  EXPECT_EQ(scheduler.usable_devices(), 2u);
}

TEST_F(SchedulerTest, ThreeFailuresAreGivenUpAndTwoTakedownsQuarantined) {
  for (const bool took_down : {false, true}) {
    Scheduler scheduler = make();
    add(scheduler, entry(1));
    Afterwards afterwards = Afterwards::again;
    int tries = 0;
    while (afterwards == Afterwards::again) {
      ASSERT_GE(bring_to_device(scheduler, 1), 0);
      afterwards = scheduler.failed(1, took_down);
      ++tries;
      now += limits.longest_rest;
      for (const int device : scheduler.devices_to_ask()) scheduler.answered(device, true);
    }
    EXPECT_EQ(afterwards, took_down ? Afterwards::quarantine : Afterwards::give_up);
    EXPECT_EQ(tries, took_down ? 2 : 3);
    EXPECT_EQ(scheduler.queued(), 0u);
    EXPECT_EQ(scheduler.queued_of("a"), 0u);
  }
}

TEST_F(SchedulerTest, DeadlinesAndCancellationFreeThePlaceAndLaterTheDevice) {
  limits.devices = 1;
  Scheduler scheduler = make();
  Entry one = entry(1);
  one.deadline = now + seconds(5);
  add(scheduler, one);
  add(scheduler, entry(2));
  ASSERT_EQ(scheduler.next_event(), one.deadline);
  ASSERT_EQ(bring_to_device(scheduler, 1), 0);
  now += seconds(5);
  EXPECT_EQ(scheduler.expire(), (std::vector<Ticket>{1}));
  EXPECT_EQ(scheduler.queued(), 1u);
  EXPECT_TRUE(scheduler.start_judgings().empty()) << "its device is still at it";
  scheduler.judged(1);
  EXPECT_EQ(scheduler.start_judgings().at(0).ticket, 2);
  EXPECT_TRUE(scheduler.cancel(2));
  EXPECT_FALSE(scheduler.cancel(2));
  EXPECT_EQ(scheduler.failed(2, true), Afterwards::gone);
}

TEST_F(SchedulerTest, CompilesOnlySoFarAhead) {
  limits.cores = 1;
  limits.devices = 1;
  Scheduler scheduler = make();
  for (Ticket ticket = 1; ticket <= 50; ++ticket) add(scheduler, entry(ticket));
  for (std::vector<Ticket> started; !(started = scheduler.start_compilations()).empty();) {
    scheduler.compiled(started[0], true);
  }
  EXPECT_EQ(scheduler.waiting_for_device(), 5u);
}

TEST_F(SchedulerTest, WhatIsPutBackComesAgain) {
  Scheduler scheduler = make();
  add(scheduler, entry(1));
  ASSERT_EQ(scheduler.start_compilations().size(), 1u);
  scheduler.put_back(1);
  EXPECT_EQ(scheduler.compiling(), 0u);
  EXPECT_EQ(scheduler.start_compilations(), (std::vector<Ticket>{1}));
  scheduler.compiled(1, true);
  ASSERT_EQ(scheduler.start_judgings().size(), 1u);
  scheduler.put_back(1);
  EXPECT_EQ(scheduler.usable_devices(), 2u);
  EXPECT_EQ(scheduler.start_judgings().size(), 1u);
}

/// Without times.
Entry correct(Ticket ticket, const std::string& client = "a") {
  Entry one;
  one.ticket = ticket;
  one.client = client;
  one.tier = Tier::correct;
  return one;
}

TEST_F(SchedulerTest, WhatIsNotTimedSharesADevice) {
  limits.cores = 10;
  limits.devices = 2;
  limits.untimed_at_once = 3;
  Scheduler scheduler = make();
  for (Ticket ticket = 1; ticket <= 7; ++ticket) add(scheduler, correct(ticket));
  for (const Ticket one : scheduler.start_compilations()) scheduler.compiled(one, true);
  std::array<int, 2> on_device{};
  for (const auto& one : scheduler.start_judgings())
    ++on_device.at(static_cast<std::size_t>(one.device));
  EXPECT_EQ(on_device, (std::array<int, 2>{3, 3}));
  EXPECT_EQ(scheduler.judging(), 6u);
  scheduler.judged(1);
  EXPECT_EQ(scheduler.start_judgings().at(0).ticket, 7);
}

TEST_F(SchedulerTest, WhatIsTimedHasItsDeviceForItselfAndIsNotPassedBy) {
  limits.cores = 10;
  limits.devices = 1;
  limits.untimed_at_once = 3;
  Scheduler scheduler = make();
  add(scheduler, correct(1));
  add(scheduler, correct(2));
  add(scheduler, entry(3));
  add(scheduler, correct(4));
  for (const Ticket one : scheduler.start_compilations()) scheduler.compiled(one, true);
  EXPECT_EQ(scheduler.start_judgings().size(), 2u);
  scheduler.judged(1);
  EXPECT_TRUE(scheduler.start_judgings().empty()) << "2 is still there";
  scheduler.judged(2);
  const auto timed = scheduler.start_judgings();
  ASSERT_EQ(timed.size(), 1u);
  EXPECT_EQ(timed[0].ticket, 3);
  scheduler.judged(3);
  EXPECT_EQ(scheduler.start_judgings().at(0).ticket, 4);
}

TEST_F(SchedulerTest, WhatFailedBesideOthersIsTriedAlone) {
  limits.cores = 10;
  limits.devices = 1;
  limits.untimed_at_once = 3;
  Scheduler scheduler = make();
  for (Ticket ticket = 1; ticket <= 3; ++ticket) add(scheduler, correct(ticket));
  for (const Ticket one : scheduler.start_compilations()) scheduler.compiled(one, true);
  ASSERT_EQ(scheduler.start_judgings().size(), 3u);
  EXPECT_EQ(scheduler.failed(1, false), Afterwards::again);
  EXPECT_EQ(scheduler.usable_devices(), 1u) << "others' memory may have been why";
  EXPECT_TRUE(scheduler.start_judgings().empty());
  scheduler.judged(2);
  scheduler.judged(3);
  ASSERT_EQ(scheduler.start_judgings().at(0).ticket, 1);
  EXPECT_EQ(scheduler.failed(1, false), Afterwards::again);
  EXPECT_EQ(scheduler.usable_devices(), 0u) << "alone it is the device";
}

TEST_F(SchedulerTest, ADeviceThatGoesDownWithSeveralRestsOnceAndQuarantinesOneAlone) {
  limits.cores = 10;
  limits.devices = 1;
  limits.untimed_at_once = 3;
  Scheduler scheduler = make();
  for (Ticket ticket = 1; ticket <= 3; ++ticket) add(scheduler, correct(ticket));
  for (const Ticket one : scheduler.start_compilations()) scheduler.compiled(one, true);
  ASSERT_EQ(scheduler.start_judgings().size(), 3u);
  for (Ticket ticket = 1; ticket <= 3; ++ticket) {
    EXPECT_EQ(scheduler.failed(ticket, true), Afterwards::again);
  }
  now += limits.first_rest;
  ASSERT_EQ(scheduler.devices_to_ask(), (std::vector<int>{0}));
  scheduler.answered(0, true);
  const auto next = scheduler.start_judgings();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(scheduler.failed(next[0].ticket, true), Afterwards::quarantine);
  EXPECT_EQ(scheduler.queued(), 2u);
}

TEST_F(SchedulerTest, AClientPaysForItsShareOfADevice) {
  limits.cores = 20;
  limits.devices = 1;
  limits.untimed_at_once = 2;
  Scheduler scheduler = make();
  for (Ticket ticket = 1; ticket <= 6; ++ticket) add(scheduler, correct(ticket, "shares"));
  for (Ticket ticket = 11; ticket <= 16; ++ticket) add(scheduler, entry(ticket, "times"));
  for (const Ticket one : scheduler.start_compilations()) scheduler.compiled(one, true);
  std::map<bool, int> judged;
  while (judged[true] + judged[false] < 9) {
    const auto started = scheduler.start_judgings();
    now += seconds(2);
    for (const auto& one : started) {
      ++judged[one.ticket > 10];
      scheduler.judged(one.ticket);
    }
  }
  EXPECT_EQ(judged[false], 6) << "two at once, so that each costs half";
  EXPECT_EQ(judged[true], 3);
}

}  // namespace
}  // namespace rekernel::service

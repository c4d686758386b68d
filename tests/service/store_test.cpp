#include "harness/service/store.h"

#include <gtest/gtest.h>

#include <future>

#include "harness/service/store_thread.h"
#include "tests/temporary.h"

namespace rekernel::service {
namespace {

NewEvaluation evaluation(const std::string& id, const std::optional<std::string>& key = {}) {
  NewEvaluation one;
  one.id = id;
  one.client = "a";
  one.key = key;
  one.digest = one.content = "content of " + (key ? *key : id);
  one.problem = "softmax";
  one.request = "{}";
  one.judge = "j";
  one.device = "d";
  return one;
}

Answer verdict(const std::string& body) { return {Answer::Kind::verdict, "j", "d", body}; }

class StoreTest : public ::testing::Test {
 protected:
  Store open() {
    Result<Store> store = Store::open(folder / "store");
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }
  Acceptance accept(Store& store, const NewEvaluation& one, bool has_place = true) {
    return store.accept({&one, 1}, has_place, 1000).at(0);
  }
  TemporaryFolder folder;
};

TEST_F(StoreTest, AKeyAskedTwiceIsOneEvaluationAndNeverOfTwoRequests) {
  Store store = open();
  const Acceptance first = accept(store, evaluation("1", "k"));
  EXPECT_EQ(first.kind, Acceptance::Kind::accepted);
  NewEvaluation again = evaluation("2", "k");
  const Acceptance second = accept(store, again, false);
  EXPECT_EQ(second.kind, Acceptance::Kind::existed) << "also where there is no place any more";
  EXPECT_EQ(second.row.id, "1");
  again.digest = "of another request";
  EXPECT_EQ(accept(store, again).kind, Acceptance::Kind::key_reused);
  again.client = "b";
  EXPECT_EQ(accept(store, again).kind, Acceptance::Kind::accepted) << "keys are a client's own";
}

TEST_F(StoreTest, ABatchIsAcceptedWholeOrNotAtAll) {
  Store store = open();
  accept(store, evaluation("1", "k"));
  std::vector<NewEvaluation> batch = {evaluation("2"), evaluation("3", "k")};
  batch[1].digest = "another";
  EXPECT_EQ(store.accept(batch, true, 0).back().kind, Acceptance::Kind::key_reused);
  EXPECT_FALSE(store.find("a", "2"));
  EXPECT_EQ(store.unanswered().size(), 1u);
}

TEST_F(StoreTest, TheFirstAnswerStands) {
  Store store = open();
  const Ticket ticket = accept(store, evaluation("1")).row.ticket;
  EXPECT_TRUE(store.answer(ticket, verdict("first"), false, 5));
  EXPECT_FALSE(store.answer(ticket, verdict("second"), false, 6));
  EXPECT_EQ(store.find("a", "1")->answer, "first");
  EXPECT_FALSE(store.request(ticket)) << "the code is forgotten";
  EXPECT_THROW(store.database().execute("UPDATE evaluations SET answer = 'x'"), StorageFailure);
}

TEST_F(StoreTest, AClientSeesItsOwnAlone) {
  Store store = open();
  accept(store, evaluation("1"));
  EXPECT_FALSE(store.find("b", "1"));
  EXPECT_TRUE(store.list("b", std::nullopt, "", 10).empty());
  EXPECT_EQ(store.list("a", std::nullopt, "", 10).size(), 1u);
  EXPECT_TRUE(store.list("a", std::nullopt, "1", 10).empty());
}

TEST_F(StoreTest, VerdictsServeAgainOnlyOfTheSameJudgeAndDeviceAndFailuresNever) {
  Store store = open();
  const auto ask = [&](const std::string& id, const std::string& device, bool takes_kept) {
    NewEvaluation one = evaluation(id);
    one.content = "same";
    one.device = device;
    one.takes_kept = takes_kept;
    return accept(store, one);
  };
  store.answer(ask("1", "d", true).row.ticket, {Answer::Kind::machine_error, "j", "d", "e"}, false,
               1);
  const Acceptance second = ask("2", "d", true);
  EXPECT_EQ(second.kind, Acceptance::Kind::accepted) << "a failure of the machine is no verdict";
  store.answer(second.row.ticket, verdict("v"), false, 1);
  const Acceptance third = ask("3", "d", true);
  EXPECT_EQ(third.kind, Acceptance::Kind::answered);
  EXPECT_EQ(third.row.answer, "v");
  EXPECT_TRUE(third.row.kept);
  EXPECT_EQ(ask("4", "another", true).kind, Acceptance::Kind::accepted);
  EXPECT_EQ(ask("5", "d", false).kind, Acceptance::Kind::accepted);
}

TEST_F(StoreTest, QuarantinedContentIsNotTriedAgain) {
  Store store = open();
  NewEvaluation one = evaluation("1");
  one.content = "bad";
  store.answer(accept(store, one).row.ticket, {Answer::Kind::quarantined, "", "", "q"}, false, 1);
  one.id = "2";
  one.takes_kept = false;
  EXPECT_EQ(accept(store, one).kind, Acceptance::Kind::answered);
}

TEST_F(StoreTest, ANewBootIsATakedownAndANewServiceIsNot) {
  Store store = open();
  const Ticket ticket = accept(store, evaluation("1")).row.ticket;
  store.begin_judging(ticket, "boot 1");
  store.settle_interrupted("boot 1");
  EXPECT_EQ(store.find("a", "1")->takedowns, 0);
  store.begin_judging(ticket, "boot 1");
  store.settle_interrupted("boot 2");
  EXPECT_EQ(store.find("a", "1")->takedowns, 1);
  store.settle_interrupted("boot 3");
  EXPECT_EQ(store.find("a", "1")->takedowns, 1) << "it was on no device";
}

TEST_F(StoreTest, SweepingKeepsTheLatestAndWhatHasNoAnswer) {
  Store store = open();
  accept(store, evaluation("open"));
  for (const char* id : {"1", "2", "3"}) {
    store.answer(accept(store, evaluation(id)).row.ticket, verdict("v"), false, 1);
  }
  EXPECT_EQ(store.sweep(1, 10), 2);
  EXPECT_FALSE(store.find("a", "2"));
  EXPECT_TRUE(store.find("a", "3"));
  EXPECT_TRUE(store.find("a", "open"));
}

TEST_F(StoreTest, BelongsToOneServiceAtATime) {
  {
    const Store store = open();
    const Result<Store> second = Store::open(folder / "store");
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("another service"), std::string::npos);
  }
  EXPECT_TRUE(Store::open(folder / "store"));
}

TEST_F(StoreTest, AFullDiskRefusesAndLeavesWhatWasThere) {
  Store store = open();
  const Ticket ticket = accept(store, evaluation("1")).row.ticket;
  const std::string limit = [&] {
    Query pages = store.database().query("PRAGMA page_count");
    return "PRAGMA max_page_count = " + std::to_string(pages.step() ? pages.integer(0) + 1 : 0);
  }();
  std::vector<std::function<void()>> told;
  std::mutex mutex;
  std::optional<std::string> failure;
  {
    store.database().execute(limit.c_str());
    StoreThread thread(std::move(store), [&](std::function<void()> work) {
      const std::lock_guard lock(mutex);
      told.push_back(std::move(work));
    });
    NewEvaluation large = evaluation("2");
    large.request.assign(1u << 20, 'x');
    thread.ask<bool>(
        [large](Store& in) {
          return !in.accept({&large, 1}, true, 0).empty();
        },
        [&](const Result<bool>& done) {
          if (!done) failure = done.error().message;
        });
  }
  for (const auto& one : told) one();
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->find("full"), std::string::npos);
  Store again = open();
  EXPECT_FALSE(again.find("a", "2"));
  EXPECT_TRUE(again.answer(ticket, verdict("v"), false, 1));
}

TEST_F(StoreTest, WorkIsDoneInOrderAndOneFailureCostsItselfAlone) {
  std::vector<std::string> order;
  std::mutex mutex;
  {
    StoreThread thread(open(), [&](const std::function<void()>& work) {
      const std::lock_guard lock(mutex);
      work();
    });
    for (int i = 0; i < 50; ++i) {
      thread.ask<int>(
          [i](Store& store) {
            const NewEvaluation one = evaluation(std::to_string(i));
            store.accept({&one, 1}, true, 0);
            if (i == 20) throw StorageFailure("this one");
            return i;
          },
          [&, i](const Result<int>& done) {
            order.push_back(done ? std::to_string(i) : "failed");
          });
    }
  }
  ASSERT_EQ(order.size(), 50u);
  EXPECT_EQ(order[19], "19");
  EXPECT_EQ(order[20], "failed");
  Store store = open();
  EXPECT_FALSE(store.find("a", "20"));
  EXPECT_TRUE(store.find("a", "21"));
}

}  // namespace
}  // namespace rekernel::service

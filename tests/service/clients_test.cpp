#include "harness/service/clients.h"

#include <gtest/gtest.h>

namespace rekernel::service {
namespace {

TEST(Clients, KnowsTheirTokens) {
  const NewToken one = new_token("trainer"), two = new_token("agent");
  EXPECT_GE(one.token.size(), 64u);
  EXPECT_EQ(one.line.find(one.token), std::string::npos) << "the file holds no token";
  const Result<Clients> clients = Clients::parse("# who\n" + one.line + "\n" + two.line, "file");
  ASSERT_TRUE(clients) << clients.error().message;
  EXPECT_EQ(clients->by_token(one.token)->name, "trainer");
  EXPECT_EQ(clients->by_token(two.token)->name, "agent");
  EXPECT_EQ(clients->by_token(one.token + "x"), nullptr);
  EXPECT_EQ(clients->by_token(""), nullptr);
}

TEST(Clients, ReadsSharesAndLimits) {
  std::string line = new_token("a").line;
  line.pop_back();
  const Result<Clients> clients = Clients::parse(line + " weight=2.5 queued=7", "file");
  ASSERT_TRUE(clients) << clients.error().message;
  EXPECT_EQ(clients->all().at(0).weight, 2.5);
  EXPECT_EQ(clients->all().at(0).most_queued, 7u);
}

TEST(Clients, RefusesWhatItCannotRead) {
  std::string good = new_token("a").line;
  good.pop_back();
  for (const std::string& bad :
       {std::string(""), std::string("a rk_token"), std::string("a sha256:12"), good + " weight=0",
        good + " speed=1", good + "\n" + good, "a-b " + good.substr(2)}) {
    const Result<Clients> clients = Clients::parse(bad, "file");
    ASSERT_FALSE(clients) << bad;
    EXPECT_TRUE(clients.error().message.starts_with("file")) << clients.error().message;
    EXPECT_EQ(clients.error().message.find("rk_token"), std::string::npos);
  }
}

}  // namespace
}  // namespace rekernel::service

#include "harness/service/listen_address.h"

#include <gtest/gtest.h>

namespace rekernel::service {
namespace {

TEST(ListenAddress, IsReadInParts) {
  const auto tcp = parse_listen_address("0.0.0.0:80");
  ASSERT_TRUE(tcp);
  EXPECT_EQ(tcp->port, 80);
  EXPECT_FALSE(tcp->is_loopback());
  EXPECT_TRUE(parse_listen_address("[::1]:0")->is_loopback());
  EXPECT_TRUE(parse_listen_address("127.0.0.1:8420")->is_loopback());
  EXPECT_TRUE(parse_listen_address("unix:/tmp/x")->is_loopback());
  for (const char* bad : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "host.name:1",
                          "unix:", "1:99999999999999999999"}) {
    EXPECT_FALSE(parse_listen_address(bad)) << bad;
  }
}

TEST(UrlDecoded, KnowsBrokenOnes) {
  EXPECT_EQ(url_decoded("a%20b+c", true), "a b c");
  EXPECT_EQ(url_decoded("a+b", false), "a+b");
  EXPECT_FALSE(url_decoded("%", false));
  EXPECT_FALSE(url_decoded("%2", false));
  EXPECT_FALSE(url_decoded("%zz", false));
}

}  // namespace
}  // namespace rekernel::service

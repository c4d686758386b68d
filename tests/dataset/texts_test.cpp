#include "harness/dataset/texts.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

namespace rekernel {
namespace {

namespace json = boost::json;

std::string error_of(const json::object& row) {
  const Result<Ok> checked = check_texts(row);
  return checked ? "" : checked.error().message;
}

TEST(Secrets, AreFoundByTheirPrefixes) {
  // Made up, and put together here, so that nobody's scanner takes this file for a leak.
  const std::string digits = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
  for (const std::string& secret :
       {"sk-" + digits, "sk-proj-" + digits, "AKIA" + std::string("ABCDEFGH12345678"),
        "ghp_" + digits, "github_pat_" + digits, "hf_" + digits, "glpat-" + digits,
        "nvapi-" + digits + digits, "xoxb-" + digits, "AIza" + digits,
        "Authorization: Bearer " + digits}) {
    const auto found = find_secret("a kernel, and " + secret + " besides");
    ASSERT_TRUE(found) << secret;
    EXPECT_EQ(found->byte, 14u) << secret;
    EXPECT_EQ(found->bytes, secret.size()) << secret;
  }
  EXPECT_TRUE(find_secret("-----BEGIN " + std::string("RSA PRIVATE KEY-----\nMII")));
}

TEST(Secrets, AreNotSeenInCode) {
  for (const char* text :
       {"task-specific-instructions-for-1234567890123456", "sk-learn", "sk-", "AKIA",
        "mask-0123456789012345678901234567", "hf_hub_download", "-----BEGIN CERTIFICATE-----",
        "for (int sk = 0; sk < 4; ++sk-1) {}", "ghp_short"}) {
    EXPECT_FALSE(find_secret(text)) << text;
  }
}

TEST(Texts, AreRefusedByColumnAndByteAndWithoutTheSecret) {
  const std::string secret = "sk-" + std::string("a1B2c3D4e5F6g7H8i9J0k1L2");
  const std::string error =
      error_of({{"messages", json::array{{{"content", "good"}}, {{"content", "my " + secret}}}}});
  EXPECT_NE(error.find("messages[1].content"), std::string::npos) << error;
  EXPECT_NE(error.find("byte 3"), std::string::npos) << error;
  EXPECT_NE(error.find("OpenAI"), std::string::npos) << error;
  EXPECT_EQ(error.find("a1B2"), std::string::npos) << error;
}

TEST(Texts, MustBeUtf8WithoutNul) {
  EXPECT_EQ(error_of({{"code", "a\xff"}}), "column code: byte 1 is not UTF-8");
  EXPECT_EQ(error_of({{"code", std::string("ab\0", 3)}}), "column code: byte 2 is NUL");
  EXPECT_EQ(error_of({{"code", "ä → b"}, {"number", 7}, {"none", nullptr}}), "");
}

}  // namespace
}  // namespace rekernel

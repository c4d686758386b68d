#include "harness/base/base64.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

TEST(Base64, IsThatOfRfc4648) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, BringsAllBytesBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    EXPECT_EQ(from_base64(base64(bytes.substr(0, size))), bytes.substr(0, size));
  }
}

TEST(Base64, TakesOneTextForEachBytes) {
  for (const char* text :
       {"=", "==", "====", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", " Zg==", "Zg==\n",
        "Z g=", "Zm9v=", "Zm9v====", "Zg==Zg==", "Zm-v", "\xff\xff\xff\xff"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

}  // namespace
}  // namespace rekernel

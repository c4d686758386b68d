#include "harness/base/cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

class Cache : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  ScopedVariable variable_{"REKERNEL_CACHE", folder_.path().string()};
};

TEST_F(Cache, GivesBackWhatItWasGiven) {
  EXPECT_FALSE(recall("cubin/0123", 100));
  const std::string content("a\0b", 3);
  ASSERT_TRUE(remember({"cubin/0123", content}));
  EXPECT_EQ(*recall("cubin/0123", 100), content);
  EXPECT_FALSE(recall("cubin/0123", 2)) << "longer than asked for";
}

TEST_F(Cache, TakesOverOnlyEntriesWithNamesOfItsOwn) {
  std::string fields;
  for (const char* name : {"engines/cudnn-1.json", "../outside", "cubin/../../outside",
                           "/tmp/outside", "cubin/.hidden", "other/file", "cubin/", "cubin/0123"}) {
    append_field(fields, name);
    append_field(fields, std::string("of ") + name);
  }
  append_field(fields, "cubin/without_content");
  remember_all(fields);
  EXPECT_EQ(*recall("engines/cudnn-1.json", 100), "of engines/cudnn-1.json");
  EXPECT_EQ(*recall("cubin/0123", 100), "of cubin/0123");
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 2u);
  EXPECT_FALSE(fs::exists(folder_.path().parent_path() / "outside"));
}

TEST_F(Cache, ChoicesMadeUnderLoadAreDropped) {
  std::string fields;
  for (const char* name : {"engines/cudnn-1.json", "cubin/0123"}) {
    append_field(fields, name);
    append_field(fields, "content");
  }
  remember_all(fields, TimedChoices::dropped);
  EXPECT_FALSE(recall("engines/cudnn-1.json", 100));
  EXPECT_TRUE(recall("cubin/0123", 100));
}

}  // namespace
}  // namespace rekernel

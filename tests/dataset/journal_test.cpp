#include "harness/dataset/journal.h"

#include <gtest/gtest.h>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

TEST(Journal, AppendsLinesAndCutsOffATornOne) {
  TemporaryFolder folder;
  const std::filesystem::path path = folder / "new" / "journal.jsonl";
  ASSERT_TRUE(append_line(path, "one"));
  ASSERT_TRUE(append_line(path, "two"));
  testing::write_text(path, "one\ntwo\nthr");
  ASSERT_TRUE(append_line(path, "three"));
  EXPECT_EQ(testing::read_text(path), "one\ntwo\nthree\n");
}

TEST(Journal, SaysWhatCannotBeWritten) {
  const Result<Ok> full = append_line("/dev/full", "line");
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("/dev/full"), std::string::npos);
}

}  // namespace
}  // namespace rekernel

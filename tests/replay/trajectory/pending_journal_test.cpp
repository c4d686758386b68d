#include "replay/trajectory/pending_journal.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <string>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using testing::read_text;
using testing::write_text;

TEST(PendingJournalFile, BringsBackWholeLines) {
  TemporaryFolder folder;
  {
    auto journal = PendingJournal::open(folder / "t.jsonl");
    ASSERT_TRUE(journal);
    ASSERT_TRUE(journal->add({{"event", "response"}, {"id", "r1.i1.b1"}, {"text", "a"}}));
    ASSERT_TRUE(journal->add({{"event", "response"}, {"id", "r1.i1.b2"}, {"text", "b"}}));
  }
  const std::string text = read_text(folder / "t.jsonl.pending");
  write_text(folder / "t.jsonl.pending", text.substr(0, text.size() - 3));
  {
    auto journal = PendingJournal::open(folder / "t.jsonl");
    ASSERT_TRUE(journal);
    EXPECT_TRUE(journal->find("response", "r1.i1.b1"));
    EXPECT_FALSE(journal->find("response", "r1.i1.b2"));
    EXPECT_FALSE(journal->find("evaluation", "r1.i1.b1"));
    ASSERT_TRUE(journal->add({{"event", "response"}, {"id", "r1.i1.b2"}, {"text", "b"}}));
  }
  EXPECT_EQ(read_text(folder / "t.jsonl.pending"), text);
  auto journal = PendingJournal::open(folder / "t.jsonl");
  journal->clear();
  EXPECT_FALSE(std::filesystem::exists(folder / "t.jsonl.pending"));
}

}  // namespace
}  // namespace rekernel

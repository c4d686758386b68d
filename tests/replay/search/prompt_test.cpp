#include "replay/search/prompt.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "replay/trajectory/event.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

ShownKernel kernel(const std::string& id, std::size_t bytes) {
  return {id, "passed: 1.0 us", "", "// " + id + "\n" + std::string(bytes, 'x')};
}

HistoryEntry entry(const std::string& id, bool passed, std::size_t log_bytes = 0) {
  return {id, "idea of " + id, passed, passed ? "passed: 1.0 us" : "crashed",
          log_bytes > 0 ? "log of " + id + std::string(log_bytes, 'l') : ""};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string kernel_prompt(const Header& header, const PromptParts& parts, const Idea& idea,
                          int branch) {
  return PromptWriter(header, parts).kernel(idea, branch).text();
}

std::string ideas_prompt(const Header& header, const PromptParts& parts, int count) {
  return PromptWriter(header, parts).ideas(count).text();
}

const PromptHistory& some_history() {
  static const PromptHistory history = [] {
    PromptHistory made(1 << 20);
    for (const HistoryEntry& one : {entry("old_bad", false, 4000), entry("old_good", true),
                                    entry("new_bad", false, 4000), entry("new_good", true)}) {
      made.add(one);
    }
    return made;
  }();
  return history;
}

PromptParts full_parts() {
  PromptParts parts;
  parts.survivors = {kernel("fast", 4000), kernel("second", 4000)};
  parts.bank = {kernel("banked", 4000), kernel("slow", 4000)};
  parts.library = {kernel("given", 4000)};
  parts.history = &some_history();
  return parts;
}

/// A limit that leaves `bytes` for kernels and history.
Header with_room(std::size_t bytes) {
  Header header = testing::small_header();
  header.settings.prompt_tokens =
      estimated_tokens(kernel_prompt(header, {}, {"t", "t"}, 1).size() + bytes);
  return header;
}

TEST(Prompt, HoldsEverythingWhereThereIsRoom) {
  const Header header = testing::small_header();
  const std::string prompt = kernel_prompt(header, full_parts(), {"Title", "Do it."}, 2);
  for (const char* part : {"### Kernel fast", "### Kernel slow", "### Given kernel given",
                           "- old_bad (idea of old_bad): crashed\n  compiler: log of old_bad",
                           "- new_good", "Title\nDo it.", "attempt 2 of 2",
                           "input x: f32 (4096, 65536)", "inline constexpr int columns = 65536;",
                           "NVIDIA H200, code for sm_90a", "|error| <= 0.01 + 0.01 * |truth|"}) {
    EXPECT_TRUE(has(prompt, part)) << part;
  }
  EXPECT_FALSE(has(prompt, "{{"));
  EXPECT_FALSE(has(prompt, "left out"));
}

TEST(Prompt, SaysWhereThereIsNothing) {
  const std::string prompt = ideas_prompt(testing::small_header(), {}, 3);
  EXPECT_TRUE(has(prompt, "None: start from scratch."));
  EXPECT_TRUE(has(prompt, "Nothing yet."));
  EXPECT_TRUE(has(prompt, "Propose 3 ideas"));
}

TEST(Prompt, LeavesOutTheLeastUsefulFirst) {
  const PromptParts parts = full_parts();
  std::string before = kernel_prompt(with_room(40000), parts, {"t", "t"}, 1);
  // What goes, in order, as the room shrinks.
  const std::vector<std::string> order = {"log of old_bad", "log of new_bad", "- old_bad",
                                          "- new_bad",      "Kernel slow",    "Kernel banked",
                                          "- old_good",     "- new_good",     "Kernel second",
                                          "Given kernel",   "Kernel fast"};
  std::size_t gone = 0;
  for (std::size_t room = 34000; room > 200; room -= 20) {
    const Header header = with_room(room);
    const std::string prompt = kernel_prompt(header, parts, {"t", "t"}, 1);
    ASSERT_LE(estimated_tokens(prompt.size()), header.settings.prompt_tokens) << room;
    while (gone < order.size() && !has(prompt, order[gone])) ++gone;
    for (std::size_t i = gone; i < order.size(); ++i) {
      ASSERT_TRUE(has(prompt, order[i])) << order[i] << " went before " << order[gone];
    }
  }
  EXPECT_EQ(gone, order.size());
}

TEST(Prompt, IsTheSameWithoutTheLinesThatNoneCanShow) {
  Header header = with_room(6000);
  const std::size_t most = most_prompt_bytes(header.settings);
  PromptHistory whole(std::size_t{1} << 30);
  PromptHistory kept(most);
  for (std::size_t i = 0; i < 2000; ++i) {
    const HistoryEntry one =
        entry("c" + std::to_string(i), i % 3 == 0, i % 5 == 1 ? 1 + i * 7 % 300 : 0);
    whole.add(one);
    kept.add(one);
    EXPECT_LE(kept.kept_bytes(), 3 * most);
    if (i % 50 > 1) continue;
    PromptParts parts = full_parts();
    for (const std::size_t room : {most, std::size_t{6000}, std::size_t{3000}, std::size_t{40}}) {
      header.settings.prompt_tokens =
          with_room(std::min(room, std::size_t{6000})).settings.prompt_tokens;
      for (const bool with_kernels : {true, false}) {
        if (!with_kernels) parts.survivors = parts.bank = parts.library = {};
        parts.history = &whole;
        const std::string expected = ideas_prompt(header, parts, 2);
        parts.history = &kept;
        ASSERT_EQ(ideas_prompt(header, parts, 2), expected) << i << ", " << room;
      }
    }
  }
  EXPECT_GT(whole.kept_bytes(), 4 * most);
}

TEST(Prompt, DoesNotExpandPlaceholdersInWhatItShows) {
  PromptParts parts;
  parts.survivors = {{"a", "{{history}}", "", "{{problem}} {{"}};
  const std::string prompt = ideas_prompt(testing::small_header(), parts, 1);
  EXPECT_TRUE(has(prompt, "{{history}}"));
  EXPECT_TRUE(has(prompt, "{{problem}} {{"));
}

// Word for word: the hash of a recorded prompt holds only as long as nothing else goes into it.
TEST(Prompt, IsItsTemplateWithTheValuesInPlace) {
  Header header;
  header.settings.prompt_tokens = 1000;
  header.settings.branches = 3;
  header.templates = {
      "{{idea_count}} for {{problem}} on {{device}}, {{format}}:\n{{seeds}}\n{{history}}",
      "{{problem}} {{device}} {{format}}\n{{seeds}}{{history}}{{idea}}\n{{branch}}."};
  header.texts = {"softmax", "an H200", "as told"};
  PromptParts parts;
  parts.survivors = {{"r1.i1.b1", "passed: 2.0 us", "{}\n", "int a;"}};
  parts.library = {{"gemm", "a note", "", "int b;\n"}};
  PromptHistory history(1 << 20);
  history.add({"r1.i1.b1", "wider", true, "passed: 2.0 us", ""});
  history.add({"r1.i2.b1", "longer", false, "compile_failed", "line 1\nline 2"});
  parts.history = &history;
  EXPECT_EQ(ideas_prompt(header, parts, 4),
            "4 for softmax on an H200, as told:\n"
            "### Kernel r1.i1.b1\npassed: 2.0 us\n```json\n{}\n```\n```cuda\nint a;\n```\n\n"
            "### Given kernel gemm\na note\n```cuda\nint b;\n```\n\n\n"
            "- r1.i1.b1 (wider): passed: 2.0 us\n"
            "- r1.i2.b1 (longer): compile_failed\n  compiler: line 1\n  line 2\n");
  EXPECT_EQ(kernel_prompt(header, {}, {"Title", "Do it."}, 2),
            "softmax an H200 as told\nNone: start from scratch.\nNothing yet.\n"
            "Title\nDo it.\n2 of 3.");
}

TEST(Prompt, IsTheSameWhateverWasWrittenBefore) {
  const PromptParts parts = full_parts();
  const Idea long_idea{"A long one", std::string(700, 'i')};
  for (std::size_t room = 30000; room > 1000; room -= 1300) {
    const Header header = with_room(room);
    PromptWriter writer(header, parts);
    for (const Idea& idea : {Idea{"t", "t"}, long_idea, Idea{"u", "v"}, long_idea}) {
      const PromptText prompt = writer.kernel(idea, 2);
      EXPECT_EQ(prompt.text(), kernel_prompt(header, parts, idea, 2));
      EXPECT_EQ(prompt.sha256(), sha256_hex(prompt.text()));
      EXPECT_EQ(prompt.size(), prompt.text().size());
    }
  }
}

TEST(Prompt, TakesItsPlaceholdersInAnyOrder) {
  Header header = testing::small_header();
  header.templates.kernel =
      "{{branch}}/{{history}}/{{idea}}/{{seeds}}{{format}}{{device}}{{problem}} {{";
  header.texts = {"P", "D", "F"};
  EXPECT_EQ(kernel_prompt(header, {}, {"t", "t"}, 1),
            "1 of 2/Nothing yet.\n/t/None: start from scratch.\nFDP {{");
}

}  // namespace
}  // namespace rekernel

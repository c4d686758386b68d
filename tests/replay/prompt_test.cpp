#include "replay/prompt.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>

#include "fakes.h"
#include "harness/base/files.h"
#include "harness/compile/compile.h"
#include "harness/problems/catalog.h"
#include "replay/event.h"

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

/// The number in check_templates' message on a limit that is too low.
std::int64_t shortest_prompt_tokens(const std::string& message) {
  std::int64_t tokens = 0;
  const char* format = "h: settings: prompt_tokens: the shortest prompt has up to %" SCNd64;
  EXPECT_EQ(std::sscanf(message.c_str(), format, &tokens), 1) << message;
  return tokens;
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
    PromptHistory made;
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
  PromptHistory history;
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

TEST(ProblemText, TellsTheDefinitionsWorkAndNoBound) {
  const std::string text = problem_text(*find_problem("matmul_fp16"), {});
  EXPECT_NE(text.find("Inputs and output together are 100663296 bytes; the definition takes "
                      "137438953472 operations.\n"),
            std::string::npos)
      << text;
}

TEST(FormatText, SpeaksOfWhatTheTargetHas) {
  const std::string hopper = format_text("sm_90a");
  EXPECT_TRUE(has(hopper, R"("sm_80" or "sm_89" (that and everything newer) or "sm_90a")"));
  EXPECT_TRUE(has(hopper, "needed for wgmma, bulk tensor copies, clusters"));
  EXPECT_TRUE(has(hopper, R"("cluster": [extents] (sm_90a))"));
  EXPECT_TRUE(has(hopper, R"(for sm_90a, {"tensor_map")"));
  EXPECT_FALSE(has(hopper, "sm_100a"));

  const std::string ampere = format_text("sm_86");
  EXPECT_TRUE(has(ampere, R"("arch": the lowest target, "sm_80" (that and everything newer).)"));
  EXPECT_TRUE(has(ampere, R"("cooperative": true. The first)"));
  EXPECT_TRUE(
      has(ampere, R"((its address) or a scalar {"i32": 7} (also u32, i64, u64, f32, f64).)"));
  for (const char* absent : {"cluster", "programmatic_launch", "tensor_map", "sm_89"}) {
    EXPECT_FALSE(has(ampere, absent)) << absent;
  }
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

TEST(Templates, AreCheckedForTheirPlaceholders) {
  Header header = testing::small_header();
  const auto message = [&] {
    const auto checked = check_templates(header, "h");
    return checked ? std::string("good") : checked.error().message;
  };
  EXPECT_EQ(message(), "good");
  header.templates.ideas += "{{weather}}";
  EXPECT_EQ(message(), "h: templates: ideas: unknown placeholder {{weather}}");
  header.templates = {default_templates().ideas + "{{history}}", default_templates().kernel};
  EXPECT_EQ(message(), "h: templates: ideas: expected the placeholder {{history}} exactly once");
  header.templates = {default_templates().ideas, "Write {{idea}}"};
  EXPECT_EQ(message(), "h: templates: kernel: expected the placeholder {{problem}} exactly once");
  header.templates = default_templates();
  header.settings.prompt_tokens = 500;
  // One that would nearly do is told by its own number.
  header.settings.prompt_tokens = shortest_prompt_tokens(message());
  EXPECT_EQ(message(), "good");
  const std::string needed = std::to_string(header.settings.prompt_tokens--);
  EXPECT_EQ(message(), "h: settings: prompt_tokens: the shortest prompt has up to " + needed +
                           " tokens, the limit is " +
                           std::to_string(header.settings.prompt_tokens));
}

TEST(WorkedExample, IsAValidCandidateOfEveryReply) {
  const auto candidate = parse_kernel_reply(testing::kernel_reply("x"),
                                            {"softmax", "fake", "r1.i1.b1", "idea", "sm_90a"});
  ASSERT_TRUE(candidate) << candidate.error().message;
}

TEST(NvrtcWorkedExample, CompilesForEveryTarget) {
  const auto compiler = Compiler::load();
  ASSERT_TRUE(compiler) << compiler.error().message;
  const auto candidate = parse_kernel_reply(testing::kernel_reply("x"),
                                            {"softmax", "fake", "r1.i1.b1", "idea", "sm_90a"});
  ASSERT_TRUE(candidate) << candidate.error().message;
  for (const std::string& target : targets_of("sm_80")) {
    if (!compiler->knows(target)) continue;
    const auto compiled =
        compiler->compile(candidate->program, problem_header(*find_problem("softmax")), target);
    ASSERT_TRUE(compiled) << compiled.error().message;
    const auto launches = check_launches(candidate->program, *compiled, "example");
    EXPECT_TRUE(launches) << launches.error().message;
  }
}

}  // namespace
}  // namespace rekernel

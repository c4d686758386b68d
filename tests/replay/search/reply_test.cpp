#include "replay/search/reply.h"

#include <gtest/gtest.h>

#include "replay/trajectory/settings.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using testing::kernel_reply;

const CandidateFrame frame{"softmax", "fake", "r1.i2.b1", "the idea", "sm_90a"};

std::vector<std::string> titles(const std::string& reply) {
  const auto ideas = parse_ideas(reply);
  std::vector<std::string> result;
  if (!ideas) return {"error: " + ideas.error().message};
  for (const Idea& idea : *ideas) result.push_back(idea.title + "/" + idea.text);
  return result;
}

using Texts = std::vector<std::string>;

TEST(ParseIdeas, ReadsAFencedList) {
  EXPECT_EQ(titles("Well:\n```json\n[{\"title\": \"A\", \"idea\": \"do a\"}, {\"idea\": \"Do b. "
                   "Then c.\"}]\n```\n"),
            (Texts{"A/do a", "Do b/Do b. Then c."}));
}

TEST(ParseIdeas, ReadsABareListOfStrings) {
  EXPECT_EQ(titles(" [\"Do a\", \"Do b\"]\n"), (Texts{"Do a/Do a", "Do b/Do b"}));
}

TEST(ParseIdeas, ReadsANumberedList) {
  EXPECT_EQ(titles("Ideas:\n1. **Wide loads**: four floats\n   at once\n\n2) Fewer passes\n"),
            (Texts{"Wide loads/**Wide loads**: four floats at once", "Fewer passes/Fewer passes"}));
}

TEST(ParseIdeas, CutsWhatIsTooLong) {
  const auto ideas = parse_ideas("[\"" + std::string(100000, 'x') + "\"]");
  ASSERT_TRUE(ideas);
  EXPECT_LE(ideas->front().text.size(), max_idea_bytes);
  EXPECT_LE(ideas->front().title.size(), 130u);
}

TEST(ParseIdeas, SaysWhatItFoundInstead) {
  EXPECT_EQ(titles("Nothing comes to mind."),
            Texts{"error: the reply has neither a JSON list of ideas nor a numbered list"});
  EXPECT_EQ(titles("  \n"), Texts{"error: the reply is empty"});
  EXPECT_EQ(titles("\xff"), Texts{"error: the reply is not UTF-8 text"});
  EXPECT_EQ(titles("```json\n[{\"title\": \"A\"\n```"),
            Texts{"error: the reply has neither a JSON list of ideas nor a numbered list"});
  EXPECT_EQ(titles("[1, {}, \"\"]"),
            Texts{"error: the reply has neither a JSON list of ideas nor a numbered list"});
}

std::string complaint(const std::string& reply) {
  const auto candidate = testing::candidate_from_text(reply, frame);
  return candidate ? "good" : candidate.error().message;
}

TEST(ParseKernelReply, FillsInWhatTheSearchKnows) {
  const auto candidate = testing::candidate_from_text(kernel_reply("x"), frame);
  ASSERT_TRUE(candidate) << candidate.error().message;
  EXPECT_EQ(candidate->problem, "softmax");
  EXPECT_EQ(candidate->name, "r1_i2_b1");
  EXPECT_EQ(candidate->origin.trajectory, "trajectories/fake.jsonl");
  EXPECT_EQ(candidate->origin.candidate, "r1.i2.b1");
  EXPECT_EQ(candidate->arch, Arch("sm_80"));  // the plan's own
  EXPECT_NE(candidate->program.source.find("// x\n"), std::string::npos);
}

TEST(ParseKernelReply, TakesIdeaAndArchitectureWhereThePlanHasNone) {
  const auto candidate = testing::candidate_from_text(
      "```cu\nextern \"C\" __global__ void k() {}\n```\n```JSON\n{\"problem\": \"conv2d\", "
      "\"launches\": [{\"kernel\": \"k\", \"grid\": [1], \"block\": [1], \"args\": []}]}\n```\n",
      frame);
  ASSERT_TRUE(candidate) << candidate.error().message;
  EXPECT_EQ(candidate->idea, "the idea");
  EXPECT_EQ(candidate->arch, Arch("sm_90a"));
  EXPECT_EQ(candidate->problem, "softmax");
}

TEST(ParseKernelReply, IgnoresProseAndOtherBlocks) {
  EXPECT_EQ(complaint("```bash\nls\n```\n" + kernel_reply("x") + "```\n[1]\n```\n"), "good");
  EXPECT_EQ(complaint("~~~~c++ title\n```\n~~~~\n" + kernel_reply("x")),
            "the reply has 2 cuda blocks; expected exactly one");
}

TEST(ParseKernelReply, AcceptsWindowsLineEnds) {
  std::string reply;
  for (const char c : kernel_reply("x"))
    reply += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(complaint(reply), "good");
}

TEST(ParseKernelReply, NamesWhatIsWrong) {
  EXPECT_EQ(complaint(""), "the reply is empty");
  EXPECT_EQ(complaint("Sorry."), "the reply has no cuda block; expected exactly one");
  EXPECT_EQ(complaint("```cuda\nint a;\n```"), "the reply has no json block; expected exactly one");
  EXPECT_EQ(complaint("```cuda\n\n```"), "the reply's cuda block is empty");
  EXPECT_EQ(complaint("```cuda\nint a;"), "the reply's cuda block is not closed: it was cut off");
  EXPECT_EQ(complaint(kernel_reply("x") + kernel_reply("y")),
            "the reply has 2 cuda blocks; expected exactly one");
  EXPECT_EQ(complaint("```cuda\nint a;\n```\n```json\n{\"launches\": \n```"),
            "the reply's json block: line 2: not valid JSON: incomplete JSON");
  EXPECT_EQ(complaint("```cuda\nint a;\n```\n```json\n[]\n```"),
            "the reply's json block: expected an object, the plan");
  EXPECT_EQ(complaint("\xc3(" + kernel_reply("x")), "the reply is not UTF-8 text");
  const std::string forbidden = complaint(
      "```cuda\n#include <stdio.h>\n```\n```json\n{\"launches\": [{\"kernel\": \"k\", \"grid\": "
      "[1], "
      "\"block\": [1], \"args\": []}]}\n```");
  EXPECT_TRUE(forbidden.starts_with("r1.i2.b1/kernel.cu: line 1: ")) << forbidden;
  EXPECT_EQ(complaint("```cuda\nint a;\n```\n```json\n{\"launches\": 5}\n```"),
            "r1.i2.b1/kernel.json: launches: expected an array, got 5");
}

TEST(ParseKernelReply, CopesWithAMegabyteOfProse) {
  std::string prose;
  while (prose.size() < (1u << 20)) prose += "`Words` and {braces} and ~tildes~.\n";
  EXPECT_EQ(complaint(prose), "the reply has no cuda block; expected exactly one");
  EXPECT_EQ(complaint(prose + kernel_reply("x")), "good");
}

}  // namespace
}  // namespace rekernel

#include "harness/pull_request/rules.h"

#include <gtest/gtest.h>

#include "harness/candidate/code.h"
#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

const char* const idea =
    "Every block keeps a whole row on chip, so that it is read once and written once.";

ChangedFile added(const std::string& path) { return {path, 'A', "0", "100644"}; }

std::string complaints_of(const std::vector<ChangedFile>& changes,
                          const std::set<std::string>& in_base = {}) {
  std::string text;
  for (const PullRequestComplaint& one : sort_out(changes, in_base).complaints) {
    text += one.file + ": " + one.message + "\n";
  }
  return text;
}

TEST(PullRequestPages, AreAddedToAndBringNoHtml) {
  EXPECT_TRUE(page_complaints("a\nb\n", "a\nnew, where x < 3 <= y\nb\nmore\n").empty());
  EXPECT_TRUE(page_complaints("<b>ours</b>\n", "<b>ours</b>\nmore\n").empty());
  const auto changed = page_complaints("a\nb\nc\n", "a\nc\n");
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_TRUE(changed[0].starts_with("line 2 of the base's page changed or is gone")) << changed[0];
  for (const char* line : {"<script>", "</td>", "<!-- results:end -->", "<?x"}) {
    EXPECT_EQ(page_complaints("", line),
              std::vector<std::string>{"line 1: HTML: expected Markdown without tags"});
  }
  EXPECT_EQ(page_complaints("", "![x](y)"),
            std::vector<std::string>{"line 1: a picture: remove it"});
}

TEST(PullRequestFilesTest, OneCandidateWithItsSearchResultAndPage) {
  const PullRequestFiles files =
      sort_out({{"generated/softmax/README.md", 'M', "100644", "100644"},
                {"generated/softmax/mine/kernel.cu", 'A', "0", "100644"},
                {"generated/softmax/mine/kernel.json", 'A', "0", "100644"},
                {"results/h200/bench.json", 'M', "100644", "100644"},
                {"trajectories/mine.jsonl", 'A', "0", "100644"},
                {"trajectories/mine.jsonl.sig", 'A', "0", "100644"}},
               {"generated/softmax/online"});
  EXPECT_TRUE(files.complaints.empty());
  EXPECT_EQ(files.candidates, (std::set<std::string>{"generated/softmax/mine"}));
  EXPECT_EQ(files.trajectories, (std::set<std::string>{"trajectories/mine.jsonl"}));
  EXPECT_EQ(files.benches, (std::set<std::string>{"results/h200/bench.json"}));
}

TEST(PullRequestFilesTest, WhatBelongsToNoCandidateIsNamedWithItsReason) {
  const struct {
    ChangedFile file;
    const char* complaint;
  } cases[] = {
      {added("harness/base/text.h"), "harness/base/text.h: the harness judges the kernel"},
      {added("ops/softmax.cpp"), "ops/softmax.cpp: the problems decide what is right"},
      {added("results/h200/errors.json"), "results/h200/errors.json: in results/ a candidate"},
      {added("generated/softmax/mine/notes.txt"), "notes.txt: a candidate is generated/"},
      {added("trajectories/mine.txt"), "trajectories/mine.txt: a search is trajectories/"},
      {added("notes.txt"), "notes.txt: it does not belong to a candidate"},
      {added("generated/softmax/README.md"), "README.md: the page of a problem for which the"},
      {added("trajectories/mine.md"), "trajectories/mine.md: belongs to a search that is not"},
      {{"README.md", 'T', "100644", "120000"}, "README.md: a link"},
      {{"README.md", 'M', "100644", "100755"}, "README.md: executable"},
      {{"lib", 'A', "0", "160000"}, "lib: a repository within the repository"},
      {{"results/h200/bench.json", 'D', "100644", "0"}, "bench.json: deleted"},
      {{"generated/softmax/mine/kernel?.cu", 'A', "0", "100644", true}, "its name holds"},
  };
  for (const auto& one : cases) {
    const std::string complaints = complaints_of({one.file});
    EXPECT_NE(complaints.find(one.complaint), std::string::npos) << one.file.path << ":\n"
                                                                 << complaints;
  }
}

TEST(PullRequestFilesTest, OneNewCandidateIsExpected) {
  const ChangedFile mine = added("generated/softmax/mine/kernel.cu");
  EXPECT_EQ(complaints_of({mine}), "");
  EXPECT_NE(complaints_of({mine}, {"generated/softmax/mine"}), "");
  EXPECT_NE(complaints_of({mine, added("generated/softmax/other/kernel.cu")}), "");
  EXPECT_TRUE(sort_out({}, {}).candidates.empty());
}

TEST(PullRequestResources, ABlockHasTheRegistersOfAMultiprocessorAndTheArchsSharedMemory) {
  Candidate candidate = scaffold_candidate(*find_problem("softmax"), "mine");
  KernelLaunch launch;
  launch.kernel = "k";
  launch.block = {512, 1, 1};
  launch.dynamic_shared_bytes = 101'000;
  candidate.program.steps = {launch};
  CompileCheck check{.candidate = "softmax/mine",
                     .target = "sm_80",
                     .resources = {{.name = "k", .registers = 130}}};
  const std::vector<ResourceUse> fits = resource_uses(candidate, {check});
  ASSERT_EQ(fits.size(), 1u);
  EXPECT_EQ(fits[0].block_registers, 16 * 4352);  // 130 · 32 rounded up to 256, 16 warps
  const std::vector<PullRequestComplaint> complaints = over_limits("kernel.json", fits);
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_NE(complaints[0].message.find("69632 registers in a block, of 65536"), std::string::npos)
      << complaints[0].message;
  check.resources[0].registers = 128;
  check.resources[0].static_shared_bytes = 1'000;
  const auto shared = over_limits("kernel.json", resource_uses(candidate, {check}));
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_NE(shared[0].message.find("102000 bytes of shared memory in a block, of 101376"),
            std::string::npos)
      << shared[0].message;
}

TEST(PullRequestIdea, SaysSomethingOfTheKernel) {
  Candidate candidate = scaffold_candidate(*find_problem("softmax"), "mine");
  EXPECT_TRUE(placeholder_idea(candidate));
  for (const char* stub :
       {"", "fast", "TODO: say what makes it fast here", "my idea is ... fast"}) {
    candidate.idea = stub;
    EXPECT_TRUE(placeholder_idea(candidate)) << stub;
  }
  candidate.idea = idea;
  EXPECT_FALSE(placeholder_idea(candidate));
}

}  // namespace
}  // namespace rekernel

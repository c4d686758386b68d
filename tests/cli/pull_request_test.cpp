// A pull request, played in a repository of its own: what it may bring, what is refused and why.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <boost/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/cli/pull_request_rules.h"
#include "ops/catalog.h"
#include "program.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

using testing::ProgramOutcome;

const char* const idea =
    "Every block keeps a whole row on chip, so that it is read once and written once.";

ProgramOutcome in_shell(const fs::path& folder, const std::string& command) {
  return testing::run_shell(command, folder.string());
}

/// A repository with what a pull request is made onto, and a candidate on top of it.
class NvrtcPullRequest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "trajectories");
    for (const char* part : {"README.md", "generated", "results", "ops", "reference", "harness",
                             "trajectories/softmax.jsonl"}) {
      fs::copy(fs::path(REKERNEL_SOURCE_DIR) / part, root_ / part, fs::copy_options::recursive);
    }
    run("git init -q -b main . && git config user.name Somebody && "
        "git config user.email somebody@example.org && git add -A && git commit -q -m base && "
        "git tag base");
    run(program("new softmax mine"));
    const fs::path plan = root_ / "generated/softmax/mine/kernel.json";
    json::value candidate = *read_json_file(plan);
    candidate.as_object()["idea"] = idea;
    std::ofstream(plan) << pretty_json(candidate);
  }

  static std::string program(const std::string& arguments) {
    return std::string("\"") + REKERNEL_PROGRAM + "\" " + arguments;
  }
  void run(const std::string& command) {
    const ProgramOutcome outcome = in_shell(root_, command);
    ASSERT_EQ(outcome.exit_status, 0) << command << "\n" << outcome.output;
  }
  ProgramOutcome verify(const std::string& options = "base --gpu off") {
    return in_shell(root_, program("verify " + options));
  }
  /// The record of the H200, with a change.
  template <class Change>
  void change_record(Change change) {
    const fs::path path = root_ / "results/h200/bench.json";
    json::value record = *read_json_file(path);
    change(record.as_object());
    std::ofstream(path) << pretty_json(record);
  }

  TemporaryFolder folder_{fs::temp_directory_path()};
  const fs::path& root_ = folder_.path();
};

TEST_F(NvrtcPullRequest, ACandidateIsWelcomeAndTheGpuIsLeft) {
  const ProgramOutcome outcome = verify("base --gpu off --comment comment.md --json");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  const json::value told = json::parse(outcome.output);
  EXPECT_EQ(told.at("candidate"), "generated/softmax/mine");
  EXPECT_TRUE(told.at("complaints").as_array().empty()) << outcome.output;
  EXPECT_TRUE(told.at("verdict").is_null());
  EXPECT_NE(outcome.output.find("measure it on a GPU: `rekernel bench softmax/mine --record`"),
            std::string::npos)
      << outcome.output;
  const Result<std::string> comment = read_file(root_ / "comment.md");
  ASSERT_TRUE(comment.ok());
  EXPECT_EQ(*comment, told.at("comment").as_string());
  EXPECT_TRUE(comment->starts_with("<!-- rekernel-verify -->\n")) << *comment;
  EXPECT_NE(comment->find("| sm_80 | `` "), std::string::npos) << *comment;
}

TEST_F(NvrtcPullRequest, AScaffoldIsNoIdea) {
  run("git add -A && git commit -q -m one && " + program("new softmax other") +
      " && git rm -q -r --cached generated/softmax/mine && rm -r generated/softmax/mine");
  const ProgramOutcome outcome = verify();
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_NE(outcome.output.find("generated/softmax/other/kernel.json: idea: still the scaffold's"),
            std::string::npos)
      << outcome.output;
}

TEST_F(NvrtcPullRequest, EverythingThatMayNotBeThereIsNamedAtOnce) {
  run("echo '// mine' >> harness/cli/main.cpp && echo '// mine' >> ops/softmax.cpp && "
      "ln -s kernel.cu generated/softmax/mine/link && "
      "mkfifo generated/softmax/mine/pipe && "
      "head -c 100 /dev/zero > trajectories/mine.md && "
      "echo mine >> generated/layernorm/ring_with_lead/kernel.cu && "
      "echo more >> README.md && mkdir -p .github && echo x > .github/x.yml && "
      "chmod +x generated/softmax/mine/kernel.cu && git rm -q trajectories/softmax.jsonl && " +
      program("new layernorm second"));
  const ProgramOutcome outcome = verify();
  EXPECT_EQ(outcome.exit_status, 1);
  for (const char* complaint :
       {"harness/cli/main.cpp: the harness judges the kernel",
        "ops/softmax.cpp: the problems decide what is right", "generated/softmax/mine/link: a link",
        "generated/softmax/mine/pipe: a pipe", "trajectories/mine.md: binary",
        "generated/layernorm/ring_with_lead: the name exists", "README.md: changed outside",
        ".github/x.yml: workflows run with rights", "generated/softmax/mine/kernel.cu: executable",
        "trajectories/softmax.jsonl: deleted", "generated/softmax/mine: one of 2 candidates",
        "generated/layernorm/second: one of 2 candidates"}) {
    EXPECT_NE(outcome.output.find(complaint), std::string::npos) << complaint << "\n"
                                                                 << outcome.output;
  }
}

TEST_F(NvrtcPullRequest, NamesOfFilesSpeakToNoTerminal) {
  const std::string odd = root_.string() + "/results/a\x1b[2K\nresults: 0 complaints\xff";
  fs::create_directories(odd);
  std::ofstream(odd + "/bench.json") << "{}\n";
  const ProgramOutcome text = verify();
  EXPECT_EQ(text.exit_status, 1) << text.output;
  EXPECT_EQ(text.output.find('\x1b'), std::string::npos) << text.output;
  EXPECT_EQ(text.output.find("\nresults: 0"), std::string::npos) << text.output;
  EXPECT_NE(text.output.find("results/a?[2K?results: 0 complaints?/bench.json: its name holds"),
            std::string::npos)
      << text.output;
  const ProgramOutcome told = verify("base --gpu off --json");
  EXPECT_TRUE(parse_json(told.output, "output").ok()) << told.output;
}

TEST_F(NvrtcPullRequest, ASourceOfTenMegabytesIsRefused) {
  run("head -c 10000000 /dev/zero | tr '\\0' ' ' >> generated/softmax/mine/kernel.cu");
  const ProgramOutcome outcome = verify();
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_NE(outcome.output.find("generated/softmax/mine/kernel.cu: 100"), std::string::npos)
      << outcome.output;
}

TEST_F(NvrtcPullRequest, OthersResultsStayAndAResultIsOfThisHarness) {
  change_record([](json::object& record) {
    json::array& rows = record.at("rows").as_array();
    json::object mine;
    for (json::value& row : rows) {
      if (row.at("kernel") == "cluster_with_prefetch") mine = row.as_object();
      if (row.at("kernel") == "ring_with_lead") row.as_object()["measured"] = "2026-11-20";
    }
    mine["kernel"] = "mine";
    mine["harness"] = "0123456789abcdef";
    rows.push_back(mine);
    rows.erase(std::find_if(rows.begin(), rows.end(), [](const json::value& row) {
      return row.at("kernel") == "promoted_sums";
    }));
  });
  const ProgramOutcome outcome = verify();
  EXPECT_EQ(outcome.exit_status, 1);
  for (const char* complaint :
       {"the row of layernorm/ring_with_lead changed",
        "the row of matmul_fp32/promoted_sums is gone",
        "the row of softmax/mine is of another source or plan",
        "the row of softmax/mine was measured by another judge (0123456789abcdef"}) {
    EXPECT_NE(outcome.output.find(std::string("results/h200/bench.json: ") + complaint),
              std::string::npos)
        << complaint << "\n"
        << outcome.output;
  }
}

TEST_F(NvrtcPullRequest, AResultThatContradictsItselfIsRefused) {
  change_record([](json::object& record) {
    json::object mine = record.at("rows").at(0).as_object();
    mine["kernel"] = "mine";
    mine["median_ns"] = 1;
    record.at("rows").as_array().push_back(mine);
  });
  const ProgramOutcome outcome = verify();
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_NE(outcome.output.find("/mine): median_ns: 1"), std::string::npos) << outcome.output;
  // So it is by whoever shows it.
  EXPECT_EQ(in_shell(root_, program("report")).exit_status, 2);
}

TEST_F(NvrtcPullRequest, ABaseThatIsNotThereIsBadInput) {
  run("git add -A && git commit -q -m mine && git checkout -q --orphan alone && "
      "git commit -q -m alone && git clone -q --depth 1 \"file://$PWD\" shallow");
  for (const auto& [base, reason] :
       {std::pair<const char*, const char*>{"nowhere", "nowhere: no commit of this clone"},
        {"base", "base: has no commit in common with HEAD; put your commits on top of it"},
        {"--help-me", "unrecognised option"}}) {
    const ProgramOutcome outcome = verify(std::string(base) + " --comment no.md");
    EXPECT_EQ(outcome.exit_status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(reason), std::string::npos) << outcome.output;
    EXPECT_FALSE(fs::exists(root_ / "no.md"));
  }
  const ProgramOutcome shallow = in_shell(root_ / "shallow", program("verify base"));
  EXPECT_EQ(shallow.exit_status, 2);
  EXPECT_NE(shallow.output.find("this clone is shallow: `git fetch --unshallow`"),
            std::string::npos)
      << shallow.output;
}

class GpuPullRequest : public NvrtcPullRequest {};

TEST_F(GpuPullRequest, AVerdictBecomesAResultAndARank) {
  const ProgramOutcome outcome = verify("base --gpu on --comment comment.md");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const Result<std::string> comment = read_file(root_ / "comment.md");
  ASSERT_TRUE(comment.ok());
  EXPECT_NE(comment->find("### Verdict: passed"), std::string::npos) << *comment;
  EXPECT_NE(comment->find("Rank "), std::string::npos) << *comment;
  const ProgramOutcome best = in_shell(root_, program("results best softmax --markdown"));
  EXPECT_EQ(best.exit_status, 0) << best.output;
  EXPECT_NE(best.output.find("| mine |"), std::string::npos) << best.output;
  // With the result committed, nothing is left to complain of.
  run("rm comment.md && git add -A && git commit -q -m mine");
  const ProgramOutcome again = verify();
  EXPECT_EQ(again.exit_status, 0) << again.output;
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

TEST(PullRequestResources, ABlockHasTheRegistersOfAMultiprocessorAndTheArchsSharedMemory) {
  Candidate candidate = scaffold_candidate(*find_problem("softmax"), "mine");
  KernelLaunch launch;
  launch.kernel = "k";
  launch.block = {512, 1, 1};
  launch.dynamic_shared_bytes = 101'000;
  candidate.program.steps = {launch};
  CompileCheck check{"softmax/mine", "sm_80", "", "", {{.name = "k", .registers = 130}}};
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

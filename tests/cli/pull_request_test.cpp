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
#include "harness/gpu/cuda.h"
#include "harness/problems/catalog.h"
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
                             "trajectories/softmax.jsonl", "trajectories/conv2d-13-rounds.jsonl"}) {
      fs::copy(fs::path(REKERNEL_SOURCE_DIR) / part, root_ / part, fs::copy_options::recursive);
    }
    leave_out_studies();
    run("git init -q -b main . && git config user.name Somebody && "
        "git config user.email somebody@example.org && git add -A && git commit -q -m base && "
        "git tag base");
    run(program("new softmax mine"));
    const fs::path plan = root_ / "generated/softmax/mine/kernel.json";
    json::value candidate = *read_json_file(plan);
    candidate.as_object()["idea"] = idea;
    std::ofstream(plan) << pretty_json(candidate);
  }

  /// None of their searches is here.
  void leave_out_studies() const {
    std::string readme = *read_file(root_ / "README.md");
    const std::string start = "<!-- studies:start -->\n";
    const std::size_t from = readme.find(start) + start.size();
    readme.erase(from, readme.find("<!-- studies:end -->") - from);
    std::ofstream(root_ / "README.md") << readme;
  }
  static std::string program(const std::string& arguments) {
    return std::string("\"") + REKERNEL_PROGRAM + "\" " + arguments;
  }
  void run(const std::string& command) {
    const ProgramOutcome outcome = in_shell(root_, command);
    ASSERT_EQ(outcome.exit_status, 0) << command << "\n" << outcome.output;
  }
  void commit() { run("git add -A && git commit -q --allow-empty -m mine"); }
  /// Verifies what is committed, which is everything.
  ProgramOutcome verify(const std::string& options = "base --gpu off") {
    commit();
    return verify_as_it_is(options);
  }
  ProgramOutcome verify_as_it_is(const std::string& options = "base --gpu off") {
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
  const std::string head = in_shell(root_, "git rev-parse HEAD | tr -d '\\n'").output;
  EXPECT_TRUE(comment->starts_with("## rekernel verify\n\nCommit `` " + head + " ``, onto `` "))
      << *comment;
  EXPECT_EQ(told.at("commit").as_string(), head);
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
        "trajectories/mine.md: binary", "generated/layernorm/ring_with_lead: the name exists",
        "README.md: changed outside", ".github/x.yml: workflows run with rights",
        "generated/softmax/mine/kernel.cu: executable", "trajectories/softmax.jsonl: deleted",
        "generated/softmax/mine: one of 2 candidates",
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
      return row.at("kernel") == "split_beforehand";
    }));
  });
  const ProgramOutcome outcome = verify();
  EXPECT_EQ(outcome.exit_status, 1);
  for (const char* complaint :
       {"the row of layernorm/ring_with_lead changed",
        "the row of matmul_fp32/split_beforehand is missing",
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
  commit();
  run("git checkout -q --orphan alone && "
      "git commit -q -m alone && git clone -q --depth 1 \"file://$PWD\" shallow");
  for (const auto& [base, reason] :
       {std::pair<const char*, const char*>{"nowhere", "nowhere: not a commit in this clone"},
        {"base", "base: has no commit in common with HEAD; put your commits on top of it"},
        {"--help-me", "unknown option '--help-me'"}}) {
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

TEST_F(NvrtcPullRequest, WhatIsCommittedIsJudged) {
  // A kernel that nobody committed is none.
  const ProgramOutcome untracked = verify_as_it_is();
  EXPECT_EQ(untracked.exit_status, 1) << untracked.output;
  EXPECT_NE(untracked.output.find("generated/: no new candidate"), std::string::npos);
  EXPECT_NE(untracked.output.find("left: commit generated/softmax/mine/kernel.cu: HEAD is judged"),
            std::string::npos)
      << untracked.output;
  // Nor is the fix of an error.
  run("cp generated/softmax/mine/kernel.cu good.cu && "
      "echo 'nonsense' >> generated/softmax/mine/kernel.cu && git add generated && "
      "git commit -q -m broken && mv good.cu generated/softmax/mine/kernel.cu");
  const ProgramOutcome broken = verify_as_it_is();
  EXPECT_EQ(broken.exit_status, 1) << broken.output;
  EXPECT_NE(broken.output.find("generated/softmax/mine/kernel.cu: for sm_80, sm_89, "),
            std::string::npos)
      << broken.output;
  EXPECT_NE(broken.output.find("left: commit generated/softmax/mine/kernel.cu"), std::string::npos);
  // And what is broken in the work tree alone breaks nothing; the repository stays as it is.
  run("git add generated && git commit -q -m fixed && git status --porcelain > ../before; "
      "echo 'nonsense' >> generated/softmax/mine/kernel.cu");
  const ProgramOutcome good = verify_as_it_is();
  EXPECT_EQ(good.exit_status, 0) << good.output;
  EXPECT_NE(good.output.find("0 complaints"), std::string::npos) << good.output;
  EXPECT_EQ(in_shell(root_, "git diff --cached --stat; git worktree list | wc -l").output, "1\n");
}

TEST_F(NvrtcPullRequest, ARecordDoesNotMakeItsOwnBounds) {
  change_record([](json::object& record) {
    record.at("device").as_object()["l2_bytes"] = 1'000'000'000'000;
    json::object& row = record.at("rows").as_array().at(8).as_object();
    row.at("ceilings").as_object()["copy_bytes_per_s"] = 21'000'000'000'000;
    row.at("references").as_object()["<img src=x>"] = {{"unavailable", "so"}};
  });
  const ProgramOutcome outcome = verify();
  EXPECT_EQ(outcome.exit_status, 1);
  for (const char* complaint : {"device.l2_bytes: 1000000000000, before 62914560",
                                "device.l2_bytes: 1000000000000, but NVIDIA H200 has 62914560",
                                "ceilings.copy_bytes_per_s: 21000000000000 is +",
                                "changed: a pull request brings only its own"}) {
    EXPECT_NE(outcome.output.find(std::string("results/h200/bench.json: ") + complaint) ==
                      std::string::npos
                  ? outcome.output.find(complaint)
                  : 0,
              std::string::npos)
        << complaint << "\n"
        << outcome.output;
  }
}

TEST_F(NvrtcPullRequest, WhatIsMadeOfRecordsIsMadeAgain) {
  run("sed -i '0,/| 0[.][0-9]* |/s//| 0.0001 |/' README.md && git diff --quiet HEAD -- README.md "
      "&& "
      "exit 1; sed -i 's|</svg>|<script>1</script></svg>|' results/pictures/reference-h200.svg && "
      "echo '<svg/>' > results/pictures/mine.svg && "
      "sed -i 's/0.5489/0.1489/' generated/softmax/README.md && "
      "printf '\\n<img src=x>\\n![a](b)\\n' >> generated/softmax/README.md && "
      "echo 'A fine day.' >> generated/conv2d/README.md && "
      "echo 'Words.' > trajectories/other.md");
  const ProgramOutcome outcome = verify();
  EXPECT_EQ(outcome.exit_status, 1);
  for (const char* complaint :
       {"README.md: its generated part is not that of results/ and trajectories/",
        "generated/softmax/README.md: line 15 of the base's page changed or is gone",
        ": HTML: expected Markdown without tags", ": a picture: remove it",
        "generated/conv2d/README.md: the page of a problem for which the pull request has no "
        "candidate",
        "trajectories/other.md: belongs to a search that is not in the pull request"}) {
    EXPECT_NE(outcome.output.find(complaint), std::string::npos) << complaint << "\n"
                                                                 << outcome.output;
  }
  // Without what draws, a changed picture is a complaint all the same.
  const bool drawn = outcome.output.find("left: compare results/pictures") == std::string::npos;
  for (const char* complaint :
       {drawn ? "results/pictures/reference-h200.svg: not the picture that the records give"
              : "results/pictures/reference-h200.svg: cannot be compared",
        drawn ? "results/pictures/mine.svg: no generator makes it"
              : "results/pictures/mine.svg: cannot be compared"}) {
    EXPECT_NE(outcome.output.find(complaint), std::string::npos) << complaint << "\n"
                                                                 << outcome.output;
  }
}

class GpuPullRequest : public NvrtcPullRequest {};

TEST_F(GpuPullRequest, AVerdictBecomesAResultAndARank) {
  if (!Device::open()) GTEST_SKIP() << "no GPU";
  // `report --readme` makes the pages of the fixtures as well.
  for (const char* part : {"tests/adversarial", "tests/mutants", "tests/honest"}) {
    fs::create_directories(root_ / part);
    fs::copy(fs::path(REKERNEL_SOURCE_DIR) / part, root_ / part, fs::copy_options::recursive);
  }
  run("git add tests && git commit -q -m tests && git tag -f base");
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
  run("rm comment.md && " + program("report --readme"));
  const ProgramOutcome again = verify();
  EXPECT_EQ(again.exit_status, 0) << again.output;
}

}  // namespace
}  // namespace rekernel

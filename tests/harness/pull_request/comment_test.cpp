#include "harness/pull_request/comment.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel {
namespace {

PullRequestFindings findings() {
  PullRequestFindings found;
  found.base = "base0";
  found.commit = "head1";
  return found;
}

TEST(PullRequestComment, NamesCommitAndComplaints) {
  PullRequestFindings found = findings();
  EXPECT_TRUE(found.passed());
  const std::string good = to_markdown(found);
  EXPECT_TRUE(good.starts_with("## rekernel verify\n\nCommit `` head1 ``, onto `` base0 ``.\n"))
      << good;
  EXPECT_NE(good.find("No complaints."), std::string::npos);

  found.complaints = {{"a.cu", "`<b>` | x"}};
  found.left = {"measure it"};
  EXPECT_FALSE(found.passed());
  const std::string bad = to_markdown(found);
  EXPECT_NE(bad.find("### 1 complaint\n"), std::string::npos) << bad;
  EXPECT_NE(bad.find("- `` a.cu ``: `` '<b>' | x ``"), std::string::npos) << bad;
  EXPECT_NE(bad.find("### Left to do\n\n- `` measure it ``"), std::string::npos) << bad;
}

TEST(PullRequestComment, ManyComplaintsAreCut) {
  PullRequestFindings found = findings();
  found.complaints.resize(100, {"a.cu", "wrong"});
  EXPECT_NE(to_markdown(found).find("- and 40 more\n"), std::string::npos);
}

TEST(PullRequestComment, AMeasuredCandidateHasItsVerdictAndRank) {
  PullRequestFindings found = findings();
  found.measured.emplace();
  found.measured->problem = "softmax";
  found.measured->kernel = "mine";
  found.measured->status = Status::wrong_result;
  found.measured->message = "3 of 4 elements";
  found.measured_on = "NVIDIA H200";
  EXPECT_FALSE(found.passed());
  const std::string text = to_markdown(found);
  EXPECT_NE(text.find("### Verdict: wrong_result\n\n`` 3 of 4 elements ``"), std::string::npos)
      << text;
  EXPECT_EQ(to_json(found).at("verdict"), "wrong_result");
  found.measured->status = Status::passed;
  found.measured->median_ns = 500'000;
  EXPECT_TRUE(found.passed());
  EXPECT_NE(to_markdown(found).find("Rank 1 of 1 on `` NVIDIA H200 ``; before, there was none."),
            std::string::npos)
      << to_markdown(found);
}

}  // namespace
}  // namespace rekernel

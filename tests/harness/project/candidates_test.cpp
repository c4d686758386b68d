#include "harness/project/candidates.h"

#include <gtest/gtest.h>

#include "harness/candidate/code.h"
#include "harness/problems/catalog.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

class CommittedCandidates : public ::testing::Test {
 protected:
  CommittedCandidates() {
    for (const auto& [problem, name] :
         {std::pair{"softmax", "one"}, std::pair{"softmax", "two"}, std::pair{"conv2d", "three"}}) {
      const fs::path folder = root_ / "generated" / problem / name;
      fs::create_directories(folder.parent_path());
      const Result<Ok> written =
          write_candidate(folder, scaffold_candidate(*find_problem(problem), name));
      if (!written) throw std::runtime_error(written.error().message);
    }
  }

  std::vector<std::string> named(const std::vector<std::string>& names) const {
    std::vector<std::string> found;
    const Result<std::vector<Candidate>> candidates = committed_candidates(root_.path(), names);
    if (!candidates) return {candidates.error().message};
    for (const Candidate& one : *candidates) found.push_back(one.problem + "/" + one.name);
    return found;
  }

  TemporaryFolder root_;
};

TEST_F(CommittedCandidates, AreAllThoseOfAProblemOrOne) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(named({}).size(), 3u);
  EXPECT_EQ(named({"softmax"}), (Names{"softmax/one", "softmax/two"}));
  EXPECT_EQ(named({"softmax/two", "conv2d"}), (Names{"conv2d/three", "softmax/two"}));
  EXPECT_EQ(named({"layernorm"}).front(),
            "no kernel of layernorm is in generated/: `rekernel new layernorm NAME` makes one");
}

TEST_F(CommittedCandidates, WhatIsNotThereIsNamed) {
  EXPECT_EQ(named({"softmax/three"}).front(),
            "unknown kernel 'softmax/three': expected PROBLEM/NAME of a folder in generated/");
  const std::string unknown = named({"sofmax"}).front();
  EXPECT_TRUE(unknown.starts_with("unknown problem 'sofmax' (did you mean 'softmax'?)")) << unknown;
  EXPECT_TRUE(unknown.ends_with(", and kernels are written PROBLEM/NAME")) << unknown;
}

}  // namespace
}  // namespace rekernel

#include "harness/project/candidates.h"

#include <gtest/gtest.h>

#include "harness/candidate/code.h"
#include "harness/problems/catalog.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// The working directory for the length of a test.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& folder) : before_(fs::current_path()) {
    fs::current_path(folder);
  }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;
  ~WorkingFolder() { fs::current_path(before_); }

 private:
  fs::path before_;
};

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

TEST_F(CommittedCandidates, AreNamedByTheirFoldersToo) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(named({"generated/softmax/two"}), (Names{"softmax/two"}));
  EXPECT_EQ(named({(root_ / "generated/softmax/two").string()}), (Names{"softmax/two"}));
  EXPECT_EQ(named({"generated/softmax/"}), (Names{"softmax/one", "softmax/two"}));
  const WorkingFolder here(root_ / "generated/softmax");
  EXPECT_EQ(named({"two", "../conv2d"}), (Names{"conv2d/three", "softmax/two"}));
  EXPECT_EQ(named({"generated/softmax/one"}), (Names{"softmax/one"}));
  EXPECT_EQ(named({"softmax/one"}), (Names{"softmax/one"}));
}

TEST_F(CommittedCandidates, AreInTheProject) {
  const TemporaryFolder elsewhere;
  fs::create_directories(elsewhere / "softmax");
  const fs::path folder = elsewhere / "softmax/one";
  ASSERT_TRUE(write_candidate(folder, scaffold_candidate(*find_problem("softmax"), "one")).ok());
  EXPECT_EQ(named({folder.string()}).front(),
            folder.string() + ": expected a kernel in " + (root_ / "generated").string());
}

/// Kernels by name, from folders in and outside of the project.
class NamedCandidates : public CommittedCandidates {
 protected:
  NamedCandidates() { fs::create_directories(root_ / "results"); }

  static std::string found(const std::string& name) {
    const Result<Candidate> candidate = named_candidate(name);
    return candidate ? candidate->problem + "/" + candidate->name : candidate.error().message;
  }

  static std::vector<std::string> all(const std::vector<std::string>& names) {
    std::vector<std::string> kernels;
    const Result<std::vector<Candidate>> candidates = named_candidates(names);
    if (!candidates) return {candidates.error().message};
    for (const Candidate& one : *candidates) kernels.push_back(one.problem + "/" + one.name);
    return kernels;
  }
};

TEST_F(NamedCandidates, AreNamedAlikeFromEverywhereInTheProject) {
  for (const char* folder : {"", "generated", "generated/conv2d", "generated/softmax/one"}) {
    const WorkingFolder here(root_ / folder);
    EXPECT_EQ(found("softmax/two"), "softmax/two") << folder;
    EXPECT_EQ(found("generated/softmax/two"), "softmax/two") << folder;
    EXPECT_EQ(found("generated/softmax/two/"), "softmax/two") << folder;
    EXPECT_EQ(found((root_ / "generated/softmax/two").string()), "softmax/two") << folder;
  }
  const WorkingFolder here(root_ / "generated/softmax/one");
  EXPECT_EQ(found("."), "softmax/one");
  EXPECT_EQ(found("../two"), "softmax/two");
}

TEST_F(NamedCandidates, AFolderThatTheShellWouldCompleteComesFirst) {
  const WorkingFolder here(root_.path());
  fs::create_directories(root_ / "softmax");
  ASSERT_TRUE(
      write_candidate(root_ / "softmax/two", scaffold_candidate(*find_problem("softmax"), "two"))
          .ok());
  const Result<fs::path> folder = candidate_folder("softmax/two");
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  EXPECT_EQ(*folder, "softmax/two");
}

TEST_F(NamedCandidates, AProblemIsNoKernelAndStandsForItsOwn) {
  const WorkingFolder here(root_.path());
  using Names = std::vector<std::string>;
  for (const char* name : {"softmax", "generated/softmax", "generated/softmax/"}) {
    EXPECT_EQ(found(name), "'softmax' is a problem: expected one kernel, as PROBLEM/NAME");
    EXPECT_EQ(all({name}), (Names{"softmax/one", "softmax/two"}));
  }
  EXPECT_EQ(all({"softmax/two", "softmax"}), (Names{"softmax/two", "softmax/one"}));
  EXPECT_EQ(all({"layernorm"}).front(),
            "no kernel of layernorm is in generated/: `rekernel new layernorm NAME` makes one");
}

TEST_F(NamedCandidates, WhatIsNotThereIsNamed) {
  const WorkingFolder here(root_.path());
  const std::string expected = ": expected PROBLEM/NAME of a folder in generated/, or a folder";
  EXPECT_EQ(found("softmax/tow"),
            "unknown kernel 'softmax/tow' (did you mean 'softmax/two'?)" + expected);
  EXPECT_EQ(found("two"), "unknown kernel 'two' (did you mean 'softmax/two'?)" + expected);
  EXPECT_EQ(found("sofmax/two"),
            "unknown kernel 'sofmax/two' (did you mean 'softmax/two'?)" + expected);
  EXPECT_EQ(found("/nonexistent"), "unknown kernel '/nonexistent'" + expected);
  EXPECT_NE(found("results").find("kernel.json"), std::string::npos) << found("results");
}

TEST_F(NamedCandidates, BesideProblemsTheUnknownMayBeEither) {
  const WorkingFolder here(root_.path());
  const auto message = [](const char* name) {
    const Result<Candidate> candidate = named_candidate_beside_problems(name);
    return candidate ? "found" : candidate.error().message;
  };
  EXPECT_EQ(message("softmax/two"), "found");
  EXPECT_TRUE(message("sofmax").starts_with("unknown problem 'sofmax' (did you mean 'softmax'?)"));
  EXPECT_TRUE(message("two").starts_with("unknown kernel 'two' (did you mean 'softmax/two'?)"));
  EXPECT_TRUE(message("a/b").starts_with("unknown kernel 'a/b': expected PROBLEM/NAME"));
}

TEST_F(CommittedCandidates, WhatIsNotThereIsNamed) {
  EXPECT_EQ(named({"softmax/three"}).front(),
            "unknown kernel 'softmax/three' (did you mean 'conv2d/three'?): expected PROBLEM/NAME "
            "of a folder in generated/");
  EXPECT_TRUE(named({"three"}).front().starts_with(
      "unknown kernel 'three' (did you mean 'conv2d/three'?)"));
  const std::string unknown = named({"sofmax"}).front();
  EXPECT_TRUE(unknown.starts_with("unknown problem 'sofmax' (did you mean 'softmax'?)")) << unknown;
  EXPECT_TRUE(unknown.ends_with(", and kernels are written PROBLEM/NAME")) << unknown;
}

}  // namespace
}  // namespace rekernel

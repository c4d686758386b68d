#include "harness/explain/subject.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>

#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

const fs::path root = REKERNEL_SOURCE_DIR;

TEST(Subject, OfACommittedKernelHasItsRows) {
  const Result<ExplainedCandidate> subject =
      subject_in_folder(root, "softmax/cluster_with_prefetch");
  ASSERT_TRUE(subject.ok()) << subject.error().message;
  EXPECT_EQ(subject->name, "softmax/cluster_with_prefetch");
  EXPECT_EQ(subject->refusal, "");
  ASSERT_FALSE(subject->verdicts.empty());
  for (const Verdict& verdict : subject->verdicts) {
    EXPECT_EQ(verdict.status, Status::passed);
    EXPECT_GT(verdict.median_ns, 0);
    EXPECT_GT(verdict.ceilings.copy_bytes_per_s, 0);
  }
}

TEST(Subject, WithAPlanThatIsRefusedSaysWhy) {
  TemporaryFolder folder;
  std::ofstream(folder / "kernel.cu") << "extern \"C\" __global__ void k() {}\n";
  std::ofstream(folder / "kernel.json") << R"({"schema": 2})";
  const Result<ExplainedCandidate> subject = subject_in_folder(root, folder.path().string());
  ASSERT_TRUE(subject.ok()) << subject.error().message;
  EXPECT_FALSE(subject->candidate);
  EXPECT_NE(subject->refusal.find("schema"), std::string::npos) << subject->refusal;
  EXPECT_FALSE(subject_in_folder(root, "softmax/no_such_kernel").ok());
  EXPECT_FALSE(subject_in_folder(root, "/nonexistent").ok());
}

TEST(Subject, OfASearchIsTheCandidateThatWasRecorded) {
  const Result<ExplainedCandidate> passed = subject_of_search(root, "softmax", "r1.i1.b2");
  ASSERT_TRUE(passed.ok()) << passed.error().message;
  ASSERT_TRUE(passed->candidate);
  EXPECT_EQ(candidate_sha256(*passed->candidate).substr(0, 16), "9b7d75dace6e91e3");
  ASSERT_EQ(passed->verdicts.size(), 1u);
  EXPECT_EQ(passed->verdicts[0].status, Status::passed);
  EXPECT_EQ(passed->verdicts[0].device, "NVIDIA H200");

  const Result<ExplainedCandidate> refused = subject_of_search(root, "softmax", "r1.i1.b1");
  ASSERT_TRUE(refused.ok()) << refused.error().message;
  EXPECT_FALSE(refused->candidate);
  EXPECT_NE(refused->refusal.find("launches[1].dynamic_shared_bytes"), std::string::npos);
  ASSERT_EQ(refused->verdicts.size(), 1u);
  EXPECT_EQ(refused->verdicts[0].status, Status::invalid_plan);

  const Result<ExplainedCandidate> seed = subject_of_search(root, "softmax", "seed.1");
  ASSERT_TRUE(seed.ok()) << seed.error().message;
  EXPECT_TRUE(seed->candidate);
  EXPECT_EQ(seed->verdicts.size(), 1u);

  EXPECT_FALSE(subject_of_search(root, "softmax", "r99.i1.b1").ok());
  EXPECT_FALSE(subject_of_search(root, "no_such_search", "r1.i1.b1").ok());
}

/// The recording up to a reply whose evaluation is awaited.
TEST(Subject, OfASearchThatGoesOnNeedsNoVerdict) {
  TemporaryFolder folder;
  std::ifstream whole(root / "trajectories/softmax.jsonl");
  std::ofstream part(folder / "softmax.jsonl");
  std::string line;
  for (int i = 0; i < 13 && std::getline(whole, line); ++i) part << line << "\n";
  part << R"({"event":"evaluation","id":"r1.i1)";  // torn by a kill
  part.close();
  const Result<ExplainedCandidate> subject =
      subject_of_search(root, (folder / "softmax.jsonl").string(), "r1.i1.b2");
  ASSERT_TRUE(subject.ok()) << subject.error().message;
  EXPECT_TRUE(subject->candidate);
  EXPECT_TRUE(subject->verdicts.empty());
  // One that came before its turn lies beside the file.
  std::ofstream(folder / "softmax.jsonl.pending")
      << R"({"event":"evaluation","id":"r1.i1.b2","problem":"softmax","status":"timed_out",)"
      << R"("message":"the run took longer than 20 s"})"
      << "\n";
  const Result<ExplainedCandidate> judged =
      subject_of_search(root, (folder / "softmax.jsonl").string(), "r1.i1.b2");
  ASSERT_TRUE(judged.ok()) << judged.error().message;
  ASSERT_EQ(judged->verdicts.size(), 1u);
  EXPECT_EQ(judged->verdicts[0].status, Status::timed_out);
}

}  // namespace
}  // namespace rekernel

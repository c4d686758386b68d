#include "harness/dataset/submissions.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// Judges as it is told, and remembers what.
class FakeLauncher : public EvaluationLauncher {
 public:
  EvaluationReport evaluate(const Candidate& candidate, const EvaluateOptions& options) override {
    judged.push_back(candidate.name);
    references = options.references;
    EvaluationReport report = blank_report(candidate);
    report.failure = failure;
    report.evaluation = testing::passing_evaluation(candidate, 700000);
    report.evaluation.harness = "digest";
    return report;
  }
  std::string failure;
  std::vector<std::string> judged;
  std::vector<std::string> references;
};

Candidate softmax_candidate() {
  Result<Candidate> candidate = testing::candidate_from_text(
      testing::kernel_reply("x"), {"softmax", "t", "r1.i1.b1", "idea", "sm_90a"});
  if (!candidate) throw std::runtime_error(candidate.error().message);
  return *candidate;
}

class SubmissionsTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    testing::write_text(path, text);
    return path;
  }
  static std::string error_of(const fs::path& path, const SubmissionOptions& options) {
    const auto read = read_submissions(path, options);
    return read ? "" : read.error().message;
  }
  TemporaryFolder folder_;
  SubmissionOptions mit_{"MIT", std::nullopt};
};

TEST_F(SubmissionsTest, KernelBenchNamesItsProblemInTheEntryOrInThePath) {
  const fs::path by_path = write("level1/a_model/problem_23/sample_4/kernel.json",
                                 R"({"kernel": "class ModelNew: pass", "eval_result": {"x": 1}})");
  const auto read = read_submissions(by_path, mit_);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->kernels.size(), 1u);
  const Submission& one = read->kernels.front();
  EXPECT_EQ(one.name, "kernelbench/level1/problem_23/sample_4");
  EXPECT_EQ(one.problem, "softmax_wide");
  EXPECT_EQ(one.license, "MIT");
  EXPECT_EQ(std::get<ForeignProgram>(one.kernel).text, "class ModelNew: pass");

  const fs::path lines = write("samples.jsonl",
                               "{\"level\": 1, \"problem_id\": 1, \"kernel_src\": \"a\"}\n"
                               "{\"level\": 3, \"problem_id\": 1, \"kernel_src\": \"a\"}\n"
                               "{\"level\": 1, \"problem_id\": 2, \"kernel_src\": \"\"}\n");
  const auto several = read_submissions(lines, mit_);
  ASSERT_TRUE(several) << several.error().message;
  EXPECT_EQ(several->kernels.size(), 1u);
  ASSERT_EQ(several->left_out.size(), 2u);
  EXPECT_NE(several->left_out[0].why.find("no problem here"), std::string::npos);
  EXPECT_NE(several->left_out[1].why.find("no program"), std::string::npos);
}

TEST_F(SubmissionsTest, FlashInferBringsPythonInOneFile) {
  const std::string solution =
      R"({"name": "a solution", "definition": "rmsnorm", "author": "somebody",
    "spec": {"language": "LANGUAGE", "target_hardware": ["NVIDIA H100"], "entry_point": "main.py::run"},
    "sources": [{"path": "main.py", "content": "def run(x): return x"}]})";
  const auto with = [&](const std::string& language) {
    std::string text = solution;
    return text.replace(text.find("LANGUAGE"), 8, language);
  };
  const auto triton = read_submissions(write("t.json", with("triton")), mit_);
  ASSERT_TRUE(triton) << triton.error().message;
  ASSERT_EQ(triton->kernels.size(), 1u);
  EXPECT_EQ(triton->kernels.front().name, "flashinfer/rmsnorm/a_solution");
  EXPECT_EQ(std::get<ForeignProgram>(triton->kernels.front().kernel).function, "run");
  const auto cuda = read_submissions(write("c.json", with("cuda")), mit_);
  ASSERT_TRUE(cuda);
  ASSERT_EQ(cuda->left_out.size(), 1u);
  EXPECT_NE(cuda->left_out.front().why.find("host code"), std::string::npos);
  // A trace tells of a solution, and holds no code.
  const auto trace = read_submissions(
      write("trace.jsonl",
            "{\"definition\": \"rmsnorm\", \"solution\": \"a\", \"workload\": {}}\n"),
      mit_);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_TRUE(trace->kernels.empty() && trace->left_out.empty());
}

TEST_F(SubmissionsTest, BadFilesAndLicencesAreNamed) {
  EXPECT_NE(error_of(write("a.json", "{"), mit_).find("a.json"), std::string::npos);
  EXPECT_NE(error_of(write("b.json", "{\"x\": 1}"), mit_).find("entry 1"), std::string::npos);
  EXPECT_NE(error_of(write("c.json", "{\"kernel\": \"a\"}"), mit_).find("problem_id"),
            std::string::npos);
  const fs::path good = write("d.json", R"({"level": 1, "problem_id": 1, "kernel": "a"})");
  EXPECT_NE(error_of(good, {"", std::nullopt}).find("--license"), std::string::npos);
  EXPECT_NE(error_of(good, {"Proprietary", std::nullopt}).find("Apache-2.0"), std::string::npos);
  EXPECT_NE(error_of(good, {"MIT", "softmaxx"}).find("softmax"), std::string::npos);
  EXPECT_FALSE(error_of(folder_ / "none.json", mit_).empty());
}

TEST_F(SubmissionsTest, ARowComesOfOurOwnVerdict) {
  FakeLauncher launcher;
  SubmissionJudge judge{launcher,
                        [](const ForeignProgram&, const std::string&) -> Result<Candidate> {
                          return Error{"it launched nothing"};
                        },
                        0, "NVIDIA H200", "NVRTC 13.0"};
  Submission submission{"mine", "file", "MIT", "softmax", softmax_candidate()};
  const auto judged = judge_submission(submission, judge);
  ASSERT_TRUE(judged && judged->kernel);
  EXPECT_EQ(launcher.judged.size(), 1u);
  EXPECT_EQ(launcher.references, std::vector<std::string>{"cudnn_softmax"});

  const fs::path path = folder_ / "results/h200/imported.jsonl";
  ASSERT_TRUE(append_imported(path, *judged->kernel));
  const auto loaded = load_imported(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(loaded->size(), 1u);
  EXPECT_EQ(loaded->front().evaluation.status, Status::passed);
  EXPECT_EQ(loaded->front().device(), "NVIDIA H200");
  EXPECT_EQ(candidate_sha256(loaded->front().candidate), candidate_sha256(softmax_candidate()));

  submission.kernel = ForeignProgram{"def run(): pass", "run"};
  const auto kept_out = judge_submission(submission, judge);
  ASSERT_TRUE(kept_out);
  EXPECT_FALSE(kept_out->kernel);
  EXPECT_EQ(kept_out->kept_out, "it launched nothing");
  launcher.failure = "no GPU";
  submission.kernel = softmax_candidate();
  EXPECT_FALSE(judge_submission(submission, judge));
}

}  // namespace
}  // namespace rekernel

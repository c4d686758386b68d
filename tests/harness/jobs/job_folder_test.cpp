#include "harness/jobs/job_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "harness/base/files.h"
#include "tests/harness/jobs/named_candidate.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// What a folder of a network file system that is mounted with `nocto` needs before a machine lists
/// it again: a change that the machine makes itself, and that leaves nothing.
void expect_touched(const fs::path& folder, const std::function<void()>& action) {
  const fs::file_time_type long_ago{};
  fs::last_write_time(folder, long_ago);
  action();
  EXPECT_NE(fs::last_write_time(folder), long_ago) << folder;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".look.")) << entry.path();
  }
}

TEST(JobFolder, TouchesWhatItListsSoThatTheServerIsAsked) {
  const TemporaryFolder temporary;
  const Result<JobFolder> folder = JobFolder::open(temporary / "jobs");
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  expect_touched(folder->path() / "results", [&] { folder->renew_results(); });
  expect_touched(folder->path() / "logs", [&] { EXPECT_TRUE(folder->logs().empty()); });
  expect_touched(folder->path(), [&] { EXPECT_FALSE(folder->is_seen("word")); });
  expect_touched(folder->path() / "results", [&] {
    const std::string key(64, 'a');
    EXPECT_FALSE(run_job(folder->path(), key, {}).ok()) << "there is no such request";
  });
}

TEST(JobFolder, AMarkOfAnotherMachineIsNoResultAndStays) {
  const TemporaryFolder temporary;
  const Result<JobFolder> folder = JobFolder::open(temporary / "jobs");
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  const fs::path mark = folder->path() / "results/.look.0123456789abcdef";
  fs::create_directory(mark);
  folder->renew_results();
  EXPECT_TRUE(folder->results().empty());
  EXPECT_TRUE(fs::exists(mark));
}

TEST(JobFolder, KnowsACutFile) {
  TemporaryFolder temporary;
  const auto folder = JobFolder::open(temporary / "jobs");
  ASSERT_TRUE(folder) << folder.error().message;
  const Candidate candidate = testing::named("plain_1");
  const auto key = folder->put_request(candidate, {});
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_TRUE(folder->is_used());
  const auto judge = [](const Candidate& one, const EvaluateOptions&) { return blank_report(one); };
  ASSERT_TRUE(run_job(folder->path(), *key, judge));
  const auto result = folder->read_result(*key);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->report.evaluation.sha256, candidate_sha256(candidate));
  const fs::path path = folder->path() / "results" / *key;
  const std::string text = *read_file(path);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{20}, text.size() / 2, text.size() - 1}) {
    ASSERT_TRUE(write_file_atomically(path, text.substr(0, size)));
    const auto cut = folder->read_result(*key);
    ASSERT_FALSE(cut) << size;
    EXPECT_NE(cut.error().message.find("truncated"), std::string::npos);
  }
  // A job takes no such file for a result that is there already.
  ASSERT_TRUE(run_job(folder->path(), *key, judge));
  EXPECT_TRUE(folder->read_result(*key));
  const auto no_judge = [](const Candidate& one, const EvaluateOptions&) {
    ADD_FAILURE() << "evaluated twice";
    return blank_report(one);
  };
  EXPECT_TRUE(run_job(folder->path(), *key, no_judge));
  EXPECT_EQ(folder->results(), std::set<std::string>{*key});
  EXPECT_FALSE(run_job(folder->path(), "../token", judge));

  JobResult other = *result;
  other.report.evaluation.harness = "another";
  const auto refusal = folder->refusal(other, "sm_90a", false);
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->find("its program is another version (judge another, here "),
            std::string::npos);
  EXPECT_EQ(folder->refusal(*result, "sm_90a", false), std::nullopt);
  other = *result;
  other.report.evaluation.target = "sm_89";
  EXPECT_EQ(folder->refusal(other, "sm_90a", false),
            "node " + other.node + ": its GPU runs sm_89, the search writes code for sm_90a");
}

}  // namespace
}  // namespace rekernel

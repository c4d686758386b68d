#include "harness/jobs/job_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// What a folder of a network file system that is mounted with `nocto` needs before a machine lists
/// it anew: a change that the machine makes itself, and that leaves nothing behind.
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

}  // namespace
}  // namespace rekernel

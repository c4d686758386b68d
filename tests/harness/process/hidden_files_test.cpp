#include "harness/process/hidden_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "harness/base/file_descriptor.h"
#include "harness/base/files.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// 0, or why a file cannot be opened.
int opening(const fs::path& path, int flags = O_RDONLY) {
  const FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  return file.is_open() ? 0 : errno;
}

TEST(HiddenFiles, AreClosedToTheThreadAndItsThreadsAndNothingElseIs) {
  const TemporaryFolder folder;
  const fs::path hidden = folder.path() / "nvidia1";
  const fs::path shown = folder.path() / "nvidia10";
  const fs::path inside = folder.path() / "folder/file";
  fs::create_directory(folder.path() / "folder");
  for (const fs::path& path : {hidden, shown, inside})
    ASSERT_TRUE(write_file_atomically(path, "text"));
  fs::create_symlink(hidden, folder.path() / "link");
  // Rights are a thread's own: only this one gives them up.
  std::jthread([&] {
    const Result<Ok> done = hide_files({hidden.string()});
    if (!done) GTEST_SKIP() << done.error().message;
    EXPECT_EQ(opening(hidden), EACCES);
    EXPECT_EQ(opening(hidden, O_WRONLY), EACCES);
    EXPECT_EQ(opening(folder.path() / "link"), EACCES);
    EXPECT_EQ(opening(shown, O_RDWR), 0);
    EXPECT_EQ(opening(inside, O_RDWR), 0);
    EXPECT_EQ(opening("/dev/null", O_RDWR), 0);
    EXPECT_EQ(opening("/proc/self/status"), 0);
    std::jthread([&] { EXPECT_EQ(opening(hidden), EACCES); }).join();
  }).join();
  EXPECT_EQ(opening(hidden), 0);
}

TEST(HiddenFiles, OfNoneNothingIsClosed) {
  EXPECT_TRUE(hide_files({}));
  EXPECT_EQ(opening("/dev/null"), 0);
}

}  // namespace
}  // namespace rekernel

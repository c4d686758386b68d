#include "harness/base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(Files, WhatIsWrittenIsRead) {
  const std::string content("a\0b\n", 4);
  const fs::path path = folder_ / "new" / "folders" / "file";
  ASSERT_TRUE(write_file_atomically(path, content).ok());
  EXPECT_EQ(*read_file(path), content);
  ASSERT_TRUE(write_file_atomically(path, "").ok());
  EXPECT_EQ(*read_file(path), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator()), 1);
}

TEST_F(Files, ReadersSeeOldOrNewContent) {
  const fs::path path = folder_ / "file";
  const std::string old_content(1 << 18, 'o');
  const std::string new_content(1 << 17, 'n');
  ASSERT_TRUE(write_file_atomically(path, old_content).ok());
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(write_file_atomically(path, i % 2 ? old_content : new_content).ok());
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const auto content = read_file(path);
    ASSERT_TRUE(content.ok());
    EXPECT_TRUE(*content == old_content || *content == new_content);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(Files, LimitsTheSize) {
  const fs::path path = folder_ / "file";
  ASSERT_TRUE(write_file_atomically(path, "12345").ok());
  EXPECT_TRUE(read_file(path, 5).ok());
  EXPECT_EQ(read_file(path, 4).error().message, path.string() + ": larger than 4 bytes");
  EXPECT_FALSE(read_file("/dev/zero", 1000).ok());
}

TEST_F(Files, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(read_file(folder_.path()).error().message,
            folder_.path().string() + ": not a regular file");
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_file(pipe).error().message, pipe.string() + ": not a regular file");
  EXPECT_EQ(read_file(folder_ / "absent").error().message,
            (folder_ / "absent").string() + ": cannot be opened: No such file or directory");
}

TEST_F(Files, WriteErrorsLeaveNothing) {
  const fs::path file = folder_ / "file";
  ASSERT_TRUE(write_file_atomically(file, "x").ok());
  EXPECT_FALSE(write_file_atomically(file / "below", "y").ok());
  fs::create_directory(folder_ / "taken");
  std::ofstream(folder_ / "taken" / "inner") << "x";
  EXPECT_FALSE(write_file_atomically(folder_ / "taken", "y").ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 2);
}

TEST_F(Files, WhatAProcessOfTheSameNumberElsewhereWritesIsLeftAlone) {
  const fs::path path = folder_ / "results";
  std::vector<fs::path> others;
  for (int i = 1; i <= 64; ++i) {
    others.push_back(path.string() + ".tmp." + std::to_string(::getpid()) + "." +
                     std::to_string(i));
    std::ofstream(others.back()) << "of another machine";
  }
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(write_file_atomically(path, "ours").ok());
  EXPECT_EQ(read_file(path).value(), "ours");
  for (const fs::path& other : others) EXPECT_TRUE(fs::exists(other)) << other;
}

TEST(RandomDigits, AreNobodyElses) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string digits = random_digits();
    EXPECT_EQ(digits.size(), 16u);
    EXPECT_EQ(digits.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(seen.insert(digits).second) << digits;
  }
}

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/// Sets variables of the environment and puts the old values back.
class Environment {
 public:
  void set(const char* name, const char* value) {
    const char* old = std::getenv(name);
    saved_.push_back({name, old ? old : "", old != nullptr});
    if (value) {
      ::setenv(name, value, 1);
    } else {
      ::unsetenv(name);
    }
  }
  ~Environment() {
    for (auto it = saved_.rbegin(); it != saved_.rend(); ++it) {
      if (it->was_set) {
        ::setenv(it->name, it->value.c_str(), 1);
      } else {
        ::unsetenv(it->name);
      }
    }
  }

 private:
  struct Saved {
    const char* name;
    std::string value;
    bool was_set;
  };
  std::vector<Saved> saved_;
};

TEST(CacheDirectory, FollowsTheEnvironment) {
  Environment environment;
  environment.set("REKERNEL_CACHE", "/own");
  environment.set("XDG_CACHE_HOME", "/xdg");
  environment.set("HOME", "/home/someone");
  EXPECT_EQ(cache_directory(), "/own");
  environment.set("REKERNEL_CACHE", "");
  EXPECT_EQ(cache_directory(), "/xdg/rekernel");
  environment.set("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(cache_directory(), "/home/someone/.cache/rekernel");
  environment.set("HOME", nullptr);
  environment.set("TMPDIR", "/tmp");
  EXPECT_EQ(cache_directory().string().rfind("/tmp/rekernel-", 0), 0u);
}

TEST_F(Files, CacheDirectoryNeverBelongsToSomebodyElse) {
  Environment environment;
  for (const char* name : {"REKERNEL_CACHE", "XDG_CACHE_HOME", "HOME"}) environment.set(name, "");
  environment.set("TMPDIR", folder_.path().c_str());
  const fs::path expected = folder_ / ("rekernel-" + std::to_string(::getuid()));
  EXPECT_EQ(cache_directory(), expected);
  fs::remove(expected);
  fs::create_directory(folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", expected);
  EXPECT_NE(cache_directory(), expected);
}

TEST(Sha256InPieces, IsThatOfTheWhole) {
  Sha256 hash;
  EXPECT_EQ(hash.hex(), sha256_hex(""));
  hash.update("ab");
  Sha256 copy = hash;
  hash.update("c");
  EXPECT_EQ(hash.hex(), sha256_hex("abc"));
  EXPECT_EQ(hash.hex(), sha256_hex("abc")) << "asking changes nothing";
  copy.update("d");
  EXPECT_EQ(copy.hex(), sha256_hex("abd"));
  copy = hash;
  EXPECT_EQ(copy.hex(), hash.hex());
}

}  // namespace
}  // namespace rekernel
